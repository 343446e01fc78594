package filter_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/filter"
)

// benchView has documents in many access classes, a hundred groups and a
// reader list on every other document.
func benchView(b *testing.B, documents, classes int) *filter.View {
	b.Helper()
	policies, err := filter.LoadPolicies("../eval/testdata/grounded-access/policies")
	require.NoError(b, err)
	changes := make([]filter.Change, documents)
	for i := range changes {
		changes[i] = filter.Change{Ordinal: uint32(i), Access: benchAccess(i, classes)}
	}
	return filter.NewView("acme", policies).Apply(changes)
}

func benchAccess(i, classes int) filter.Access {
	class := i % classes
	a := filter.Access{
		Readers: filter.Readers{Undeclared: i%2 == 0},
		Attributes: filter.Attributes{
			"classification": []string{"public", "internal", "confidential", "restricted"}[class%4],
			"departments":    []string{fmt.Sprintf("department-%d", class/4)},
			"projects":       []string{},
		},
		Applicability: filter.Applicability{ValidFrom: epoch.Add(time.Duration(i) * time.Minute)},
	}
	if i%2 == 1 {
		a.Readers.List = []filter.Reader{filter.Group(fmt.Sprintf("group-%d", i%100)), filter.User(fmt.Sprintf("user-%d", i%1000))}
	}
	return a
}

func benchPrincipal(i int) filter.Principal {
	return filter.Principal{
		Tenant: "acme", Subject: fmt.Sprintf("user-%d", i), Groups: []string{"group-1", "group-3"},
		Attributes: filter.Attributes{"clearance": "confidential", "department": "department-7", "projects": []string{}},
	}
}

// reportCPU adds the process's CPU time to the wall time, which means little on shared cores.
func reportCPU(b *testing.B) {
	start := cpuTime(b)
	b.Cleanup(func() { b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N), "cpu-ns/op") })
}

func cpuTime(b *testing.B) int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// BenchmarkResolveCold asks Cedar about 10,000 classes, 100,000 documents.
func BenchmarkResolveCold(b *testing.B) {
	view := benchView(b, 100_000, 10_000)
	b.ReportAllocs()
	reportCPU(b)
	for i := 0; b.Loop(); i++ {
		resolve(b, view, benchPrincipal(i))
	}
}

// BenchmarkResolveNewView has the decisions, but not this View's Set.
func BenchmarkResolveNewView(b *testing.B) {
	view, p := benchView(b, 100_000, 10_000), benchPrincipal(1)
	resolve(b, view, p)
	reportCPU(b)
	for b.Loop() {
		b.StopTimer()
		next := view.Apply(manyChanges) // too many to bring the Set forward
		b.StartTimer()
		resolve(b, next, p)
	}
}

var manyChanges = func() (changes []filter.Change) {
	for i := range 5000 {
		changes = append(changes, filter.Change{Ordinal: uint32(i), Access: benchAccess(i, 10_000)})
	}
	return changes
}()

// BenchmarkResolveAfterChange is the first Resolve after a change of one
// document, which touches one class.
func BenchmarkResolveAfterChange(b *testing.B) {
	view, p := benchView(b, 100_000, 10_000), benchPrincipal(1)
	resolve(b, view, p)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		ordinal := i * 7919 % 100_000
		view = view.Apply([]filter.Change{{Ordinal: uint32(ordinal), Access: benchAccess(i, 10_000)}})
		b.StartTimer()
		resolve(b, view, p)
	}
}

func BenchmarkResolveCached(b *testing.B) {
	view, p := benchView(b, 100_000, 10_000), benchPrincipal(1)
	resolve(b, view, p)
	b.ReportAllocs()
	reportCPU(b)
	for b.Loop() {
		resolve(b, view, p)
	}
}

func resolve(b *testing.B, view *filter.View, p filter.Principal) filter.Set {
	set, err := view.Resolve(p)
	if err != nil {
		b.Fatal(err)
	}
	return set
}

// BenchmarkApplyOne changes the access of one of 100,000 documents.
func BenchmarkApplyOne(b *testing.B) {
	view := benchView(b, 100_000, 10_000)
	b.ReportAllocs()
	reportCPU(b)
	for i := 0; b.Loop(); i++ {
		ordinal := i * 7919 % 100_000
		view = view.Apply([]filter.Change{{Ordinal: uint32(ordinal), Access: benchAccess(i, 10_000)}})
	}
}

func BenchmarkApplyAll(b *testing.B) {
	reportCPU(b)
	for b.Loop() {
		benchView(b, 100_000, 10_000)
	}
}

// BenchmarkWithinNow is a search at the present time; a new View computes it once.
func BenchmarkWithinNow(b *testing.B) {
	view := benchView(b, 100_000, 10_000)
	set := resolve(b, view, benchPrincipal(1))
	scope := filter.Scope{Region: "EU", AsOf: epoch.Add(30 * 24 * time.Hour)}
	b.Run("cached", func(b *testing.B) {
		reportCPU(b)
		for b.Loop() {
			view.Within(set, scope)
		}
	})
	b.Run("first", func(b *testing.B) {
		reportCPU(b)
		for b.Loop() {
			view.WithPolicies(view.Policies()).Within(set, scope)
		}
	})
}

// BenchmarkJudge is the recheck of one candidate.
func BenchmarkJudge(b *testing.B) {
	view, p := benchView(b, 100_000, 10_000), benchPrincipal(1)
	judge, err := view.Judge(view.Policies(), p)
	require.NoError(b, err)
	a := benchAccess(28, 10_000)
	b.ReportAllocs()
	reportCPU(b)
	for b.Loop() {
		judge.Admits(a)
	}
}

// BenchmarkAdmits is the same without verdicts.
func BenchmarkAdmits(b *testing.B) {
	policies, err := filter.LoadPolicies("../eval/testdata/grounded-access/policies")
	require.NoError(b, err)
	p, a := benchPrincipal(1), benchAccess(28, 10_000)
	b.ReportAllocs()
	reportCPU(b)
	for b.Loop() {
		if _, err := policies.Admits(p, a); err != nil {
			b.Fatal(err)
		}
	}
}

package eval

import "fmt"

// Kind says what a finding is.
type Kind string

// Kinds of findings.
const (
	Leak         Kind = "leak"         // somebody was shown what the labels forbid
	Disagreement Kind = "disagreement" // less is visible than the labels say
	ScopeFailure Kind = "scope"        // a document out of scope was found
	Degraded     Kind = "degraded"     // a response left a stage out
	ProbeFailure Kind = "probe"        // an answer shows that a forbidden document exists
	Mixed        Kind = "chunkers"     // documents of one format are cut in different ways
	Unfounded    Kind = "unfounded"    // an answer says or shows what it may not
)

// Finding is one thing that the gate holds against the service.
type Finding struct {
	Kind      Kind   `json:"kind"`
	Principal string `json:"principal"`
	Case      string `json:"case,omitempty"` // none for a listing
	Strategy  string `json:"strategy,omitempty"`
	Document  string `json:"document,omitempty"`
	Version   uint32 `json:"version,omitempty"`
	Detail    string `json:"detail"`
}

// String is the finding in one line.
func (f Finding) String() string {
	where := "listing"
	if f.Case != "" {
		where = "case " + f.Case + ", " + f.Strategy
	}
	what := f.Detail
	if f.Document != "" {
		what = fmt.Sprintf("%s version %d: %s", f.Document, f.Version, f.Detail)
	}
	return fmt.Sprintf("%s: %s (%s): %s", f.Kind, f.Principal, where, what)
}

// Outcome is how a run ended.
type Outcome int

// Outcomes. The zero value is the failure of a run that did not come to an end.
const (
	Failed       Outcome = iota // an error, or the labels and the service disagree
	Passed                      // nothing found
	Leaked                      // a forbidden document, or its existence, was shown
	OutOfScope                  // a document out of scope was found
	SomeDegraded                // a response left a stage out
	MixedUp                     // documents of one format are cut in different ways
	Unsound                     // an answer says or shows what it may not
)

// String names the outcome.
func (o Outcome) String() string {
	switch o {
	case Passed:
		return "passed"
	case SomeDegraded:
		return "degraded"
	case MixedUp:
		return "mixed chunkers"
	case OutOfScope:
		return "scope failure"
	case Leaked:
		return "leak"
	case Unsound:
		return "unfounded"
	}
	return "failed"
}

// ExitCode is the process's: 0 passed, 1 failed, 2 a leak, 3 a scope failure,
// 4 a degraded response, 5 chunkers mixed, 6 an unfounded answer.
func (o Outcome) ExitCode() int {
	switch o {
	case Passed:
		return 0
	case Leaked:
		return 2
	case OutOfScope:
		return 3
	case SomeDegraded:
		return 4
	case Unsound:
		return 6
	case MixedUp:
		return 5
	}
	return 1
}

// MarshalText names the outcome in run.json.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads a name that MarshalText wrote.
func (o *Outcome) UnmarshalText(text []byte) error {
	for _, known := range []Outcome{Failed, Passed, Leaked, OutOfScope, SomeDegraded, MixedUp} {
		if known.String() == string(text) {
			*o = known
			return nil
		}
	}
	return fmt.Errorf("unknown outcome %q", text)
}

// outcomeOf is the gravest of the findings. A disagreement fails the run unless
// there is a leak as well.
func outcomeOf(findings []Finding) Outcome {
	found := map[Kind]bool{}
	for _, f := range findings {
		found[f.Kind] = true
	}
	switch {
	case found[Leak], found[ProbeFailure]:
		return Leaked
	case found[Disagreement]:
		return Failed
	case found[ScopeFailure]:
		return OutOfScope
	case found[Unfounded]:
		return Unsound
	case found[Mixed]:
		return MixedUp
	case found[Degraded]:
		return SomeDegraded
	}
	return Passed
}

func count(findings []Finding, kind Kind) int {
	n := 0
	for _, f := range findings {
		if f.Kind == kind {
			n++
		}
	}
	return n
}

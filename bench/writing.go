package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"sluice/bench/load"
	"sluice/client"
)

const (
	freshPrefix   = "new/" // of keys of documents that a turn writes
	ingestStreams = 8
	underWay      = 16 // documents that the writer beside searches has sent and not seen written
	settleWait    = time.Second
	settledShare  = .05 // of one core
)

// document is a passage as the daemon takes it: its readers are the groups of
// the shares that it is in.
func (p passage) document(key, text string) client.Document {
	readers := []string{"group:100"}
	for _, share := range p.Filters {
		readers = append(readers, "group:"+share)
	}
	return client.Document{Key: key, Format: "text", Text: text, Readers: &readers}
}

// ingest writes all passages. Those that an earlier run has written are not
// embedded again, and have the readers that they had at first.
func (b *hybridBench) ingest(ctx context.Context) error {
	if _, err := b.writer.CreateCollection(ctx, hybridCollection, client.CollectionSettings{}); err != nil {
		return err
	}
	if err := b.removeLeftovers(ctx); err != nil {
		return err
	}
	started := time.Now()
	counts := make([]ingested, ingestStreams)
	group, writing := errgroup.WithContext(ctx)
	for i := range counts {
		group.Go(func() error {
			return fill(writing, b.share(i), func(numbers []int) ([]int, error) { return b.write(writing, numbers, &counts[i]) })
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	created := 0
	for _, c := range counts {
		created += c.created
	}
	fmt.Fprintf(b.log, "%d of %d passages were new: %.0f s\n", created, len(b.passages), time.Since(started).Seconds())
	return b.settle(ctx)
}

// removeLeftovers removes what a run that was cut short wrote beside its searches.
func (b *hybridBench) removeLeftovers(ctx context.Context) error {
	var keys []string
	for d, err := range b.writer.Documents(ctx, hybridCollection) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(d.Key, freshPrefix) {
			keys = append(keys, d.Key)
		}
	}
	return b.remove(ctx, keys)
}

// share are the numbers of every eighth passage.
func (b *hybridBench) share(first int) (numbers []int) {
	for i := first; i < len(b.passages); i += ingestStreams {
		numbers = append(numbers, i)
	}
	return numbers
}

// write sends passages in one request. Left are those that the daemon has no room
// for yet, or has not answered; err says why.
func (b *hybridBench) write(ctx context.Context, numbers []int, n *ingested) (left []int, err error) {
	answered := 0
	var refusal error
	err = b.writer.Ingest(ctx, hybridCollection, b.documents(numbers), func(r client.WriteResult) error {
		number := numbers[answered]
		answered++
		if r.Error != nil && passing(r.Error) {
			left, refusal = append(left, number), r.Error
			return nil
		}
		return n.add(r)
	})
	return append(left, numbers[answered:]...), cmp.Or(err, refusal)
}

func (b *hybridBench) documents(numbers []int) iter.Seq2[client.Document, error] {
	return func(yield func(client.Document, error) bool) {
		for _, i := range numbers {
			if p := b.passages[i]; !yield(p.document(strconv.Itoa(i), p.Text), nil) {
				return
			}
		}
	}
}

// ingested counts what a stream has written.
type ingested struct {
	created int
	keys    []string
}

func (n *ingested) add(r client.WriteResult) error {
	if r.Error != nil {
		return r.Error
	}
	if r.Status == "created" {
		n.created++
	}
	n.keys = append(n.keys, r.Key)
	return nil
}

// whileIngesting writes new documents until f is done, and then deletes them.
// It returns how many it wrote in a second.
func (b *hybridBench) whileIngesting(ctx context.Context, f func() error) (rate float64, err error) {
	done, room := make(chan struct{}), make(chan struct{}, underWay)
	var fresh ingested
	var took time.Duration
	var group errgroup.Group
	group.Go(func() error {
		started := time.Now()
		err := b.writer.Ingest(ctx, hybridCollection, b.fresh(done, room), func(r client.WriteResult) error {
			<-room
			return fresh.add(r)
		})
		took = time.Since(started)
		return err
	})
	failed := f()
	close(done)
	if err := errors.Join(failed, group.Wait()); err != nil {
		return 0, err
	}
	return float64(fresh.created) / took.Seconds(), errors.Join(b.remove(ctx, fresh.keys), b.settle(ctx))
}

func (b *hybridBench) remove(ctx context.Context, keys []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(ingestStreams)
	for _, key := range keys {
		group.Go(func() error { return b.writer.Delete(ctx, hybridCollection, key) })
	}
	return group.Wait()
}

// fresh yields documents that nobody has written before, each when there is
// room for it, until done.
func (b *hybridBench) fresh(done <-chan struct{}, room chan<- struct{}) iter.Seq2[client.Document, error] {
	run := strconv.FormatUint(rand.Uint64(), 36)
	return func(yield func(client.Document, error) bool) {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case room <- struct{}{}:
			}
			first, second := b.anyPassage(), b.anyPassage()
			text := half(first.Text) + " " + run + " " + half(second.Text)
			if !yield(first.document(fmt.Sprintf("%s%s/%d", freshPrefix, run, n), text), nil) {
				return
			}
		}
	}
}

func (b *hybridBench) anyPassage() passage { return b.passages[rand.IntN(len(b.passages))] }

// half is the first half of the words.
func half(text string) string {
	words := strings.Fields(text)
	return strings.Join(words[:len(words)/2], " ")
}

// whileRevoking takes documents away from their readers, one after the other,
// until f is done, and gives each back. It returns what the taking took.
func (b *hybridBench) whileRevoking(ctx context.Context, f func() error) (took []time.Duration, err error) {
	done := make(chan struct{})
	var group errgroup.Group
	group.Go(func() (err error) {
		took, err = b.revoke(ctx, done)
		return err
	})
	failed := f()
	close(done)
	return took, errors.Join(failed, group.Wait(), b.settle(ctx))
}

func (b *hybridBench) revoke(ctx context.Context, done <-chan struct{}) (took []time.Duration, err error) {
	for {
		i := rand.IntN(len(b.passages))
		key := strconv.Itoa(i)
		before := b.passages[i].document(key, "").Readers
		started := time.Now()
		if _, err := b.writer.SetAccess(ctx, hybridCollection, key, client.AccessPatch{Readers: json.RawMessage("[]")}); err != nil {
			return took, err
		}
		took = append(took, time.Since(started))
		again, err := json.Marshal(before)
		if err != nil {
			return took, err
		}
		if _, err := b.writer.SetAccess(ctx, hybridCollection, key, client.AccessPatch{Readers: again}); err != nil {
			return took, err
		}
		select {
		case <-done:
			return took, nil
		default:
		}
	}
}

// settle waits until the daemon, whose index may still merge what was written,
// has nothing more to do.
func (b *hybridBench) settle(ctx context.Context) error {
	for {
		before, err := load.UsageOf(b.daemon.PID)
		if err != nil {
			return err
		}
		if err := sleep(ctx, settleWait); err != nil {
			return err
		}
		after, err := load.UsageOf(b.daemon.PID)
		if err != nil {
			return err
		}
		if (after.CPU - before.CPU).Seconds() < settledShare*settleWait.Seconds() {
			return nil
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

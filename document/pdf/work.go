package pdf

import (
	"context"
	"slices"
)

// perLook is how many steps are taken until the context is looked at: less than
// a millisecond.
const perLook = 1 << 14

// work counts the steps of those who make a document of its pages: one for each
// thing that a loop looks at whose length the file decides.
type work struct {
	ctx   context.Context
	steps int // since the context was looked at
}

// stopped is the panic of work whose context has ended; assemble makes an error of it.
type stopped struct{ error }

// did adds steps that are taken, or are about to be.
func (w *work) did(steps int) {
	if w.steps += steps; w.steps >= perLook {
		w.look()
	}
}

// look looks at the context, once for each perLook steps.
func (w *work) look() {
	for ; w.steps >= perLook; w.steps -= perLook {
		if err := w.ctx.Err(); err != nil {
			panic(stopped{err})
		}
	}
}

// sortBy sorts stably; each comparison is a step.
func sortBy[T any](w *work, all []T, compare func(a, b T) int) {
	slices.SortStableFunc(all, func(a, b T) int {
		w.did(1)
		return compare(a, b)
	})
}

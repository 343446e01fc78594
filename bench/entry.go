package bench

import (
	"context"
	"errors"
	"io"
	"strconv"

	"sluice/model"
)

// entry says who takes part, and in what.
type entry struct {
	model   string // its folder
	output  string // "embedding" or "logits"
	threads int
	peers   *Peers // nil: none
}

// contestants are ours, float32 first, then the peers. end closes them.
func contestants(ctx context.Context, m *model.Model, e entry) (list []contestant, end func() error, err error) {
	var closers []io.Closer
	end = func() (err error) {
		for _, c := range closers {
			err = errors.Join(err, c.Close())
		}
		return err
	}
	for _, p := range precisions {
		device, err := newOwn(m, e.threads, p)
		if err != nil {
			return nil, nil, errors.Join(err, end())
		}
		device.scores = e.output == "logits"
		list, closers = append(list, device), append(closers, device)
	}
	if e.peers == nil {
		return list, end, nil
	}
	process, err := e.peers.start(ctx, "--model", e.model, "--output", e.output, "--threads", strconv.Itoa(e.threads))
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	closers = append(closers, process)
	for _, name := range process.names {
		if e.peers.chosen(name) {
			list = append(list, peer{process, name})
		}
	}
	return list, end, nil
}

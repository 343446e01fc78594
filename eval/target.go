package eval

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"sluice/client"
)

// Target is a running service. Token gives the credential by which the service
// knows a principal: its tenant, subject, groups, attributes and roles. Stop may
// be nil, for a service that was running before; Data is "" unless the service
// keeps its data in a directory of this machine.
type Target struct {
	URL   string
	Data  string
	Token func(ctx context.Context, p Principal) (string, error)
	Stop  func() error
}

// Starter starts or finds a service for a data set. With --self it starts a
// daemon on a free port and an empty directory, with the data set's policies.
type Starter func(ctx context.Context, d *Dataset) (Target, error)

// Over returns the Connector that drives a service over HTTP.
func Over(start Starter) Connector {
	return func(ctx context.Context, d *Dataset) (Backend, error) {
		target, err := start(ctx, d)
		if err != nil {
			return nil, err
		}
		return &httpBackend{target: target}, nil
	}
}

type httpBackend struct {
	target  Target
	clients []*client.Client
}

func (b *httpBackend) As(ctx context.Context, p Principal) (Session, error) {
	token, err := b.target.Token(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("credential: %w", err)
	}
	c, err := client.New(b.target.URL, client.WithToken(token))
	if err != nil {
		return nil, err
	}
	b.clients = append(b.clients, c)
	return c, nil
}

// Disk is the bytes of the files in the service's directory; 0 without one. Files
// that go meanwhile do not count.
func (b *httpBackend) Disk() (int64, error) {
	if b.target.Data == "" {
		return 0, nil
	}
	total := int64(0)
	err := filepath.WalkDir(b.target.Data, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				total += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return total, err
}

// Close lets go of the connections first: a daemon that drains waits for them.
func (b *httpBackend) Close() error {
	for _, c := range b.clients {
		c.CloseIdle()
	}
	if b.target.Stop == nil {
		return nil
	}
	if err := b.target.Stop(); err != nil {
		return fmt.Errorf("stopping the service: %w", err)
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"sluice/filter"
	"sluice/server/audit"
	"sluice/store"
)

// startPolicies loads the policies. Bad ones are refused, and those in force
// before stay, so that a typing error neither opens nor closes anything; without
// any before, the daemon does not start.
func (d *daemon) startPolicies(ctx context.Context) error {
	present, err := d.store.Policies(ctx)
	if err != nil {
		return err
	}
	err = d.loadPolicies(ctx, present)
	if err == nil || errors.Is(err, errPolicies) && len(present.Policies) > 0 && !builtIn(present) {
		_ = d.reloads.Note("policies", err)
		return nil
	}
	return err
}

// errPolicies: the configured policies cannot be used.
var errPolicies = errors.New("the configured policies cannot be used")

// loadPolicies puts the configured policies in force, unless they are those
// present.
func (d *daemon) loadPolicies(ctx context.Context, present store.PolicySource) error {
	policies, err := d.configuredPolicies()
	if err != nil {
		return fmt.Errorf("%w: %w", errPolicies, err)
	}
	d.warnOfPolicies(present, policies)
	schema, files := policies.Source()
	if present.Schema == schema && maps.Equal(present.Policies, files) {
		return nil
	}
	return d.setPolicies(ctx, policies)
}

// warnOfPolicies says what an operator may not have meant.
func (d *daemon) warnOfPolicies(present store.PolicySource, next *filter.Policies) {
	if d.policies != nil {
		return
	}
	switch {
	case d.config.Policies == "" && len(present.Policies) > 0 && !builtIn(present):
		d.log.Warn("the setting policies is empty, and was not before: from now on readers alone decide, within the tenant")
	case d.config.Policies != "" && next.Len() == 0:
		d.log.Warn("the directory of policies has none: nobody reads anything", "policies", d.config.Policies)
	}
}

// builtIn reports the policies of a daemon without any of its own. They permit
// much, so they do not stand in for what the operator wants and cannot be read.
func builtIn(p store.PolicySource) bool {
	starter, err := filter.StarterPolicies()
	if err != nil {
		return true
	}
	schema, files := starter.Source()
	return p.Schema == schema && maps.Equal(p.Policies, files)
}

// setPolicies puts policies in force that are not those in force.
func (d *daemon) setPolicies(ctx context.Context, policies *filter.Policies) error {
	schema, files := policies.Source()
	r := audit.Record{Action: audit.LoadPolicies, Policies: fmt.Sprintf("%x", policies.Digest())}
	return d.audit.Administrative(ctx, r, internalError, func() (uint64, error) {
		epoch, _, err := d.store.SetPolicies(ctx, store.PolicySource{Schema: schema, Policies: files})
		if err != nil {
			return 0, err
		}
		d.log.Info("policies in force", "files", len(files))
		return epoch, nil
	})
}

func (d *daemon) configuredPolicies() (*filter.Policies, error) {
	switch {
	case d.policies != nil:
		return d.policies, nil
	case d.config.Policies == "":
		return filter.StarterPolicies()
	}
	return filter.LoadPolicies(d.config.Policies)
}

// reloadPolicies reads the policies again and waits until searches obey them.
func (d *daemon) reloadPolicies(ctx context.Context) error {
	present, err := d.store.Policies(ctx)
	if err != nil {
		return err
	}
	if err := d.loadPolicies(ctx, present); err != nil {
		return err
	}
	epoch, err := d.store.Epoch(ctx)
	if err != nil {
		return err
	}
	return d.serving.Await(ctx, epoch)
}

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"reflect"
	"syscall"

	"sluice/server"
	"sluice/server/config"
	"sluice/server/identity"
)

// reload reads again what may change while the daemon runs: policies, keys and
// certificate. What cannot be used is refused, and leaves what was before.
func (d *daemon) reload(ctx context.Context) error {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	err := errors.Join(
		d.reloads.Note("policies", d.reloadPolicies(ctx)),
		d.reloads.Note("keys", d.reloadKeys()),
	)
	if d.certificate != nil {
		err = errors.Join(err, d.reloads.Note("certificates", d.certificate.Reload()))
	}
	if err == nil {
		d.log.Info("read again: policies, keys and certificates")
	}
	return err
}

// reloadKeys reads auth of the configuration again, and the files that it names.
func (d *daemon) reloadKeys() error {
	settings, err := d.reread()
	if err != nil {
		return err
	}
	d.warnOfSettings(settings)
	ctx, end := context.WithCancel(context.Background())
	identities, err := identity.Renew(ctx, settings.Auth, settings.Demo, d.identities)
	if err != nil {
		end()
		return err
	}
	d.identities = identities
	d.server.SetIdentities(identities)
	d.keysEnd()
	d.keysEnd = end
	return nil
}

// endKeys ends what watches the keys.
func (d *daemon) endKeys() {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	if d.keysEnd != nil {
		d.keysEnd()
	}
}

// warnOfSettings says so where the file has changed in what only a start reads.
func (d *daemon) warnOfSettings(next config.Config) {
	next.Auth = d.started.Auth
	if !reflect.DeepEqual(next, d.started) {
		d.log.Warn("the configuration has changed beyond auth; the rest of it takes effect at the next start")
	}
}

func (d *daemon) openCertificate() (err error) {
	if !d.config.TLS.Enabled() {
		return nil
	}
	if d.certificate, err = server.LoadCertificate(d.config.TLS, d.registry); err != nil {
		return err
	}
	return d.reloads.Note("certificates", nil)
}

func (d *daemon) scheme() string {
	if d.certificate != nil {
		return "https"
	}
	return "http"
}

// reloadOnHangup starts the goroutine that answers SIGHUP, and returns what ends it.
func (d *daemon) reloadOnHangup(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	hangups, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer close(done)
		for {
			select {
			case <-hangups:
				_ = d.reload(ctx) // which has said what is wrong
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		cancel()
		<-done
	}
}

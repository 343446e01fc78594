package main

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"sluice/filter"
	"sluice/gpu/cuda"
	"sluice/server"
	"sluice/server/config"
	"sluice/server/identity"
)

const (
	reachTimeout = 5 * time.Second
	soonEnded    = 14 * 24 * time.Hour
)

// configuration reads the settings, and reports whether there are any.
func (e *examination) configuration(c doctorCommand) bool {
	looked := "every key is known, every value allowed"
	if c.Config == "" {
		looked = "no --config: these are the demo's settings, and the environment's; sluice doctor --config FILE looks at yours"
	}
	settings, err := config.Load(c.Config, nil, c.Demo || c.Config == "")
	if err != nil {
		e.misconfigured(err)
	} else {
		e.ok("configuration", "%s", looked)
	}
	for _, name := range settings.StrayVariables(os.Environ()) {
		e.warn("configuration", "sluice serve --help shows the variables of settings", "the environment variable %s means nothing", name)
	}
	e.settings = settings
	return settings.Data != ""
}

// misconfigured has a fault for every line; one that ends with a colon only
// says where the indented ones after it are.
func (e *examination) misconfigured(err error) {
	do := "sluice serve --help shows every key"
	if errors.Is(err, fs.ErrNotExist) {
		do = "name a file that is there with --config; " + do
	}
	where := ""
	for line := range strings.Lines(err.Error()) {
		text := strings.TrimSpace(line)
		if !strings.HasPrefix(line, " ") {
			where = ""
		}
		if strings.HasSuffix(text, ":") {
			where = text + " "
			continue
		}
		e.fault("configuration", do, "%s%s", where, text)
	}
}

// listeners looks whether the ports are free, and who can listen in.
func (e *examination) listeners() {
	e.listener("listen", e.settings.Listen)
	if e.settings.AdminListen != "off" {
		e.listener("admin_listen", e.settings.AdminListen)
	}
	if !loopback(e.settings.Listen) && !e.settings.TLS.Enabled() {
		e.warn("listen", "set tls.cert and tls.key, or put a proxy with TLS before it", "%s is reached from other machines, in plain HTTP: tokens and texts can be read on the way", e.settings.Listen)
	}
	if e.settings.AdminListen != "off" && !loopback(e.settings.AdminListen) {
		e.warn("admin_listen", "keep it on 127.0.0.1, or on a network of its own", "%s is reached from other machines, and asks for no key", e.settings.AdminListen)
	}
	if e.settings.TLS.Enabled() {
		e.certificate()
	}
}

func (e *examination) listener(setting, address string) {
	listener, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		_ = listener.Close()
		e.ok(setting, "%s is free", address)
	case errors.Is(err, syscall.EADDRINUSE) && e.running:
		e.ok(setting, "%s is taken, as by the daemon that runs", address)
	case errors.Is(err, syscall.EADDRINUSE):
		e.fault(setting, "end the program that listens there, or name another address with "+config.Flag(setting), "%s is taken by another program", address)
	case errors.Is(err, os.ErrPermission):
		e.fault(setting, "a port from 1024 on, or the capability CAP_NET_BIND_SERVICE", "%s is not for this user", address)
	default:
		e.fault(setting, "an address of this machine", "%v", err)
	}
}

// loopback reports an address that other machines do not reach.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

func (e *examination) certificate() {
	const do = "renew it; kill -HUP makes the daemon read it"
	certificate, err := server.LoadCertificate(e.settings.TLS, prometheus.NewRegistry())
	switch {
	case err != nil:
		e.fault("tls", do, "%v", err)
	case time.Until(certificate.Ends()) < soonEnded:
		e.warn("tls", do, "the certificate ends on %s", certificate.Ends().Format(time.DateOnly))
	default:
		e.ok("tls", "the certificate is good until %s", certificate.Ends().Format(time.DateOnly))
	}
}

// keys reads keys and policies as a start does, and reaches for the JWKS URL.
func (e *examination) keys(ctx context.Context) {
	ctx, end := context.WithTimeout(ctx, reachTimeout)
	defer end()
	if _, err := identity.Renew(ctx, e.settings.Auth, e.settings.Demo, nil); err != nil {
		e.fault("auth", "mend the key, the file or the address that it names", "%v", err)
	} else {
		tokens := "no JWTs"
		if e.settings.Auth.JWT != nil {
			tokens = "JWTs"
		}
		e.ok("auth", "%d API keys, %s", len(e.settings.Auth.APIKeys), tokens)
	}
	if e.settings.Policies == "" {
		e.ok("policies", "none of your own: readers alone decide, within the tenant")
		return
	}
	policies, err := filter.LoadPolicies(e.settings.Policies)
	switch {
	case err != nil:
		e.fault("policies", "mend the line that it names", "%v", err)
	case policies.Len() == 0:
		e.warn("policies", "write one, or leave the setting out", "%s has none: nobody reads anything", e.settings.Policies)
	default:
		e.ok("policies", "%d of them", policies.Len())
	}
}

func (e *examination) devices(ctx context.Context) {
	kind, list, _ := strings.Cut(e.settings.Device, ":")
	if kind != "cuda" && kind != "auto" {
		return
	}
	_, ordinals, err := gpus(ctx, list)
	switch {
	case err == nil:
		e.ok("gpu", "models run on cuda %v", ordinals)
	case kind == "auto":
		e.ok("gpu", "the CPU runs the models: %v", err)
	case errors.Is(err, cuda.ErrNoWorker):
		e.fault("gpu", "make gpu, and keep sluice-gpu beside sluice", "%v", err)
	default:
		e.fault("gpu", "sluice devices lists what there is; nvidia-smi says whether the driver works", "%v", err)
	}
}

// servers reaches for the database and the Milvus servers, and writes nothing there.
func (e *examination) servers(ctx context.Context) {
	if e.settings.Store != "" {
		e.database(ctx)
	}
	for _, address := range e.settings.Milvus {
		dialer := net.Dialer{Timeout: reachTimeout}
		connection, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			e.fault("milvus", "start it, or mend the address", "%v", err)
			continue
		}
		_ = connection.Close()
		e.ok("milvus", "%s answers the connection", address)
	}
}

func (e *examination) database(ctx context.Context) {
	const do = "check host, name and password of store (PGPASSWORD, a passfile), and that the database runs"
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	var connection *pgx.Conn
	config, err := pgxpool.ParseConfig(e.settings.Store)
	if err == nil {
		connection, err = pgx.ConnectConfig(ctx, config.ConnConfig)
	}
	if err != nil {
		e.fault("database", do, "%v", err) // pgx leaves the password out
		return
	}
	defer connection.Close(ctx)
	var version, fsync string
	err = connection.QueryRow(ctx, "select current_setting('server_version'), current_setting('fsync')").Scan(&version, &fsync)
	switch {
	case err != nil:
		e.fault("database", do, "%v", err)
	case fsync == "off":
		e.warn("database", "set fsync=on", "version %s, with fsync=off: what it acknowledges is lost with the power", version)
	default:
		e.ok("database", "version %s", version)
	}
}

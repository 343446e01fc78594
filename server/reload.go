package server

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
)

// Reloads says what became of reading files again, in the log and as metrics.
type Reloads struct {
	log        *slog.Logger
	successful *prometheus.GaugeVec
	succeeded  *prometheus.GaugeVec
}

// NewReloads returns Reloads whose metrics are registered.
func NewReloads(registry *prometheus.Registry, log *slog.Logger) *Reloads {
	what := []string{"what"}
	r := &Reloads{
		log: log,
		successful: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_last_reload_successful", Help: "1: the last reading of policies, keys or certificates took effect; 0: those before are still in force."}, what),
		succeeded: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_last_reload_success_timestamp_seconds", Help: "When a reading last took effect, in seconds since 1970."}, what),
	}
	registry.MustRegister(r.successful, r.succeeded)
	return r
}

// Note records the outcome of reading what, and returns err.
func (r *Reloads) Note(what string, err error) error {
	if err != nil {
		r.successful.WithLabelValues(what).Set(0)
		r.log.Error("the "+what+" are refused; those before stay in force", "error", err)
		return err
	}
	r.successful.WithLabelValues(what).Set(1)
	r.succeeded.WithLabelValues(what).SetToCurrentTime()
	return nil
}

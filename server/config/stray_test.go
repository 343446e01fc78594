package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStrayVariables(t *testing.T) {
	environment := []string{
		"HOME=/root", "SLUICE_LISEN=127.0.0.1:1", "SLUICE_LISTEN=127.0.0.1:2", "SLUICE_POLICIES=p", "SLUICE_LIMITS_BODY_BYTES=1MiB", "SLUICE_POLICES=p",
		"SLUICE_PORT=tcp://10.0.0.1:80", "SLUICE_PORT_80_TCP=tcp://10.0.0.1:80", "SLUICE_SERVICE_HOST=10.0.0.1", "SLUICE_TOKEN=t", "SLUICE_CHAT_KEY=k", "SLUICE_=x",
	}
	require.Equal(t, []string{"SLUICE_LISEN", "SLUICE_POLICES", "SLUICE_CHAT_KEY", "SLUICE_"}, Default().StrayVariables(environment))
	c := Default()
	c.Answer = &Answer{KeyEnv: "SLUICE_CHAT_KEY"}
	require.Equal(t, []string{"SLUICE_LISEN", "SLUICE_POLICES", "SLUICE_"}, c.StrayVariables(environment))
}

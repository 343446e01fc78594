package pdf

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero/api"
)

// hiding hides an implementation as go-pdfium does.
type hiding struct{ implementation any }

func (h hiding) GetImplementation() any { return h.implementation }

type withMemory struct{}

func (withMemory) Memory() api.Memory { return struct{ api.Memory }{} }

type noLookup struct{ Module withMemory }

type otherLookup struct{ Module withMemory }

func (*otherLookup) Fn(int) api.Function { return nil }

// Another go-pdfium is told from the one that is known before a file is read, and
// no file is blamed.
func TestOtherEngines(t *testing.T) {
	for name, other := range map[string]any{
		"no implementation": struct{}{}, "nothing": hiding{}, "no struct": hiding{3}, "no module": hiding{&struct{ Modul int }{}},
		"no memory": hiding{&struct{ Module int }{}}, "no lookup": hiding{&noLookup{}}, "another lookup": hiding{&otherLookup{}},
	} {
		require.ErrorIs(t, checkEngine(other, nil), errEngine, name)
	}
	e, err := shared(t).newEngine()
	require.NoError(t, err, "it is checked")
	defer e.Close()
	instance, err := e.GetInstance(time.Minute)
	require.NoError(t, err)
	defer instance.Close()
	err = checkEngine(instance, []string{"malloc", "FPDF_Renamed"})
	require.ErrorIs(t, err, errEngine)
	require.ErrorContains(t, err, "FPDF_Renamed")
}

package statistics

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMean(t *testing.T) {
	require.Equal(t, Estimate{}, Mean(nil))
	require.Equal(t, Estimate{Mean: 0.5, Low: 0.5, High: 0.5}, Mean([]float64{0.5, 0.5, 0.5}))
	// 100 zeros and ones, half each: the mean's standard error is .05, so a normal
	// interval is .402 … .598.
	values := make([]float64, 100)
	for i := range 50 {
		values[i] = 1
	}
	got := Mean(values)
	require.Equal(t, 0.5, got.Mean)
	require.InDelta(t, 0.402, got.Low, 0.012)
	require.InDelta(t, 0.598, got.High, 0.012)
	require.Equal(t, got, Mean(values), "the same values give the same interval")
}

func TestQuantile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	require.Equal(t, 3.0, Quantile(0.5, values))
	require.Equal(t, 5.0, Quantile(0.95, values))
	require.Equal(t, []float64{5, 1, 4, 2, 3}, values, "the argument stays as it is")
	require.Zero(t, Quantile(0.5, nil))
}

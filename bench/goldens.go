package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"sluice/bench/figures"
	"sluice/model"
	"sluice/model/tokenizer"
)

const goldenTokens = 256 // texts were cut there

// goldenCosines compares with vectors that another program made of the same
// texts in float32: c.cosine_min and c.cosine_median.
func goldenCosines(ctx context.Context, m *model.Model, dir string, contestants []contestant, out map[string]float64) error {
	ids, err := goldenIDs(m, filepath.Join(dir, "texts.jsonl"))
	if err != nil {
		return fmt.Errorf("reading the golden texts: %w", err)
	}
	want, err := readFloats(filepath.Join(dir, "embeddings_256.f32le"), len(ids)*m.Config.Hidden)
	if err != nil {
		return fmt.Errorf("reading the golden vectors: %w", err)
	}
	for _, c := range contestants {
		t, err := c.run(ctx, ids, 0)
		if err != nil {
			return err
		}
		cosines := compare(rows(want, m.Config.Hidden), t.vectors)
		out[figureName(c)+".cosine_min"] = cosines[0]
		out[figureName(c)+".cosine_median"] = figures.MedianOf(cosines)
	}
	return nil
}

func goldenIDs(m *model.Model, path string) (ids [][]int32, err error) {
	t, err := tokenizer.Load(m.Tokenizer)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for lines := json.NewDecoder(bufio.NewReader(file)); lines.More(); {
		var line struct{ Text string }
		if err := lines.Decode(&line); err != nil {
			return nil, err
		}
		var e tokenizer.Encoding
		if err := t.Encode(&e, line.Text, tokenizer.Options{MaxLength: goldenTokens, ParseSpecialTokens: true}); err != nil {
			return nil, err
		}
		ids = append(ids, e.IDs)
	}
	return ids, nil
}

func readFloats(path string, n int) ([]float32, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(data) != 4*n {
		return nil, fmt.Errorf("%s has %d bytes, want %d", path, len(data), 4*n)
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return values, nil
}

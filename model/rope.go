package model

import (
	"encoding/json"
	"fmt"
	"math"
)

// ropeParameters describes rotary embeddings (Su et al., arXiv:2104.09864).
type ropeParameters struct {
	Type    string  `json:"rope_type"`
	OldType string  `json:"type"`
	Theta   float64 `json:"rope_theta"`
	Factor  float64 `json:"factor"`
}

// rope reads the rotary embedding for layers of a kind, "full_attention" or
// "sliding_attention", from either generation of keys. theta is what older
// keys or the family say.
func (f *configFile) rope(kind string, theta float64) (Attention, error) {
	p := ropeParameters{Theta: theta}
	if len(f.RopeParameters) > 0 {
		if err := readRope(f.RopeParameters, kind, &p); err != nil {
			return Attention{}, err
		}
	}
	if f.RopeScaling != nil {
		p.Type, p.OldType, p.Factor = f.RopeScaling.Type, f.RopeScaling.OldType, f.RopeScaling.Factor
	}
	return p.attention(f.Hidden / f.Heads)
}

// readRope reads parameters given once for all layers, or per kind of layer.
func readRope(data json.RawMessage, kind string, p *ropeParameters) error {
	var perKind map[string]json.RawMessage
	if err := json.Unmarshal(data, &perKind); err != nil {
		return fmt.Errorf("%w: rope_parameters: %w", ErrInvalid, err)
	}
	if own, ok := perKind[kind]; ok {
		data = own
	}
	if err := json.Unmarshal(data, p); err != nil {
		return fmt.Errorf("%w: rope_parameters: %w", ErrInvalid, err)
	}
	return nil
}

func (p ropeParameters) attention(headSize int) (Attention, error) {
	kind := p.Type
	if kind == "" {
		kind = p.OldType
	}
	if !(p.Theta > 0) || (kind != "" && kind != "default" && !(p.Factor > 0)) {
		return Attention{}, fmt.Errorf("%w: rope_theta %v, factor %v", ErrInvalid, p.Theta, p.Factor)
	}
	switch kind {
	case "", "default":
		return Attention{Theta: p.Theta}, nil
	case "linear":
		return Attention{Theta: p.Theta, Stretch: p.Factor}, nil
	case "ntk": // as GTE means it: fixed, whatever the length
		return Attention{Theta: p.Theta * p.Factor, Stretch: math.Pow(p.Factor, 2/float64(headSize))}, nil
	}
	return Attention{}, fmt.Errorf("%w: rotary embeddings of type %q", ErrUnsupported, kind)
}

package cpu

import "sluice/gpu"

// aside is a device of the same weights with memory and one worker of its own, for
// batches that are worth no more.
type aside struct{ *Device }

var _ gpu.Aside = aside{}

func (d *Device) aside() aside {
	other := &Device{
		config: d.config, encoder: d.encoder, layers: d.layers, head: d.head, relative: d.relative, ropes: d.ropes,
		activate: d.activate, activateRow: d.activateRow, kernels: d.kernels, precision: d.precision,
		team: newTeam(1),
	}
	other.ws.workers = make([]scratch, 1)
	if d.narrow != nil {
		other.narrow = d.narrow.on(other)
	}
	return aside{other}
}

// on is the same encoder for another device.
func (n *narrow) on(d *Device) *narrow {
	other := &narrow{device: d, number: n.number, layers: n.layers, words: n.words, meet: newBarrier()}
	other.start()
	return other
}

// AsideTokens implements gpu.Aside.
func (aside) AsideTokens() int { return leastRows }

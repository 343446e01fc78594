package tokenizer

import (
	"maps"
	"slices"
)

// trie maps strings to values above or equal to zero. It is a double array
// (Aoe, "An efficient digital search algorithm by using a double-array
// structure", 1989): the child of node n for byte c is nodes[n].base+c, if that
// node's parent is n.
type trie struct {
	nodes []trieNode
}

type trieNode struct {
	base, parent, value int32
}

const (
	root     = 0
	noNode   = -1
	noParent = -2
	noValue  = -1
)

var freeNode = trieNode{parent: noNode, value: noValue}

func newTrie(entries map[string]int32) *trie {
	b := trieBuilder{keys: slices.Sorted(maps.Keys(entries)), entries: entries}
	b.grow(1)
	b.nodes[root].parent = noParent
	b.queue = []subtree{{root, 0, len(b.keys), 0}}
	for len(b.queue) > 0 {
		next := b.queue[0]
		b.queue = b.queue[1:]
		b.build(next)
	}
	b.grow(256) // leaves have base 0: every base+byte must be a node
	return &trie{nodes: slices.Clip(b.nodes)}
}

// step returns the child of node for c, or noNode.
func (t *trie) step(node int32, c byte) int32 {
	next := t.nodes[node].base + int32(c)
	if t.nodes[next].parent != node {
		return noNode
	}
	return next
}

// walk returns the node of key under root, or noNode.
func (t *trie) walk(key string) int32 {
	node := int32(root)
	for i := 0; i < len(key) && node != noNode; i++ {
		node = t.step(node, key[i])
	}
	return node
}

// longest returns the value of the longest prefix of text, not empty, that
// leads from node to a value, and that prefix's length, or noValue and 0.
func (t *trie) longest(node int32, text string) (value int32, length int) {
	value = noValue
	for i := 0; i < len(text); i++ {
		if node = t.step(node, text[i]); node == noNode {
			break
		}
		if v := t.nodes[node].value; v != noValue {
			value, length = v, i+1
		}
	}
	return value, length
}

// trieBuilder builds breadth first, which keeps the nodes near the root, the
// most visited, together.
type trieBuilder struct {
	keys    []string // sorted
	entries map[string]int32
	nodes   []trieNode
	queue   []subtree
	first   int32 // no node before it is worth trying
}

// subtree is the node whose keys are keys[from:to], alike in their first depth
// bytes.
type subtree struct {
	node     int32
	from, to int
	depth    int
}

func (b *trieBuilder) build(s subtree) {
	if s.from < s.to && len(b.keys[s.from]) == s.depth {
		b.nodes[s.node].value = b.entries[b.keys[s.from]]
		s.from++
	}
	var labels []byte
	var bounds []int
	for i := s.from; i < s.to; i++ {
		if c := b.keys[i][s.depth]; len(labels) == 0 || labels[len(labels)-1] != c {
			labels, bounds = append(labels, c), append(bounds, i)
		}
	}
	if len(labels) == 0 {
		return
	}
	bounds = append(bounds, s.to)
	base := b.place(labels)
	b.nodes[s.node].base = base
	for i, c := range labels {
		child := base + int32(c)
		b.nodes[child].parent = s.node
		b.queue = append(b.queue, subtree{child, bounds[i], bounds[i+1], s.depth + 1})
	}
}

// place finds the first base whose nodes for the labels are all free. When
// nearly all nodes that it had to pass were taken, it does not come back.
func (b *trieBuilder) place(labels []byte) int32 {
	taken := int32(0)
	for at := max(b.first, int32(labels[0])+1); ; at++ {
		base := at - int32(labels[0])
		b.grow(int(base) + 256)
		if b.nodes[at].parent != noNode {
			taken++
			continue
		}
		if b.fits(base, labels) {
			if taken*20 >= (at-b.first)*19 {
				b.first = at
			}
			return base
		}
	}
}

func (b *trieBuilder) fits(base int32, labels []byte) bool {
	for _, c := range labels {
		if b.nodes[base+int32(c)].parent != noNode {
			return false
		}
	}
	return true
}

func (b *trieBuilder) grow(size int) {
	for len(b.nodes) < size {
		b.nodes = append(b.nodes, freeNode)
	}
}

package fidelity

// node is a node of an ordered tree; only leaves have text.
type node struct {
	text     string
	children []*node
}

// flat is a tree in postorder, as Zhang and Shasha number it from 0.
type flat struct {
	nodes  []*node
	depth  []int // of a node below the root
	left   []int // the leftmost leaf below a node
	starts []int // key roots: the last node of each leftmost leaf, ascending
}

func flatten(root *node) *flat {
	f := &flat{}
	f.add(root, 0)
	last := map[int]int{}
	for i, leaf := range f.left {
		last[leaf] = i
	}
	for i, leaf := range f.left {
		if last[leaf] == i {
			f.starts = append(f.starts, i)
		}
	}
	return f
}

// add numbers a subtree and returns its leftmost leaf.
func (f *flat) add(n *node, depth int) int {
	leaf := -1
	for _, child := range n.children {
		if first := f.add(child, depth+1); leaf < 0 {
			leaf = first
		}
	}
	if leaf < 0 {
		leaf = len(f.nodes)
	}
	f.nodes, f.depth, f.left = append(f.nodes, n), append(f.depth, depth), append(f.left, leaf)
	return leaf
}

// distance is the least cost of edits that turn one ordered tree into the other
// (Zhang, Shasha: Simple fast algorithms for the editing distance between trees
// and related problems, SIAM J. Comput. 18, 1989): 1 to insert or delete a node,
// rename(i, j) ≤ 2 to change node i of a into node j of b.
func distance(a, b *flat, rename func(i, j int) float64) float64 {
	trees := matrix(len(a.nodes), len(b.nodes))
	forests := matrix(len(a.nodes)+1, len(b.nodes)+1)
	for _, i := range a.starts {
		for _, j := range b.starts {
			forest(a, b, i, j, trees, forests, rename)
		}
	}
	return trees[len(a.nodes)-1][len(b.nodes)-1]
}

// forest fills the distances of the subtrees along the leftmost paths of i and j.
func forest(a, b *flat, i, j int, trees, d [][]float64, rename func(i, j int) float64) {
	from, to := a.left[i], b.left[j]
	d[0][0] = 0
	for x := from; x <= i; x++ {
		d[x-from+1][0] = d[x-from][0] + 1
	}
	for y := to; y <= j; y++ {
		d[0][y-to+1] = d[0][y-to] + 1
	}
	for x := from; x <= i; x++ {
		for y := to; y <= j; y++ {
			p, q := x-from, y-to
			best := min(d[p][q+1], d[p+1][q]) + 1
			if a.left[x] == from && b.left[y] == to {
				best = min(best, d[p][q]+rename(x, y))
				trees[x][y] = best
			} else {
				best = min(best, d[a.left[x]-from][b.left[y]-to]+trees[x][y])
			}
			d[p+1][q+1] = best
		}
	}
}

func matrix(rows, columns int) [][]float64 {
	m, all := make([][]float64, rows), make([]float64, rows*columns)
	for i := range m {
		m[i] = all[i*columns : (i+1)*columns]
	}
	return m
}

package eval

import "sluice/client"

// What a grid tries.
var (
	poolDepths   = []int{20, 30, 50, 100}
	rrfConstants = []int{10, 30, 60, 100}
	weights      = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1}
	scoreWeights = []float64{0.02, 0.03, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2} // of BM25, beside a cosine
	depths       = []int{30, 200}                                          // of both legs
)

// grid are the points of a strategy, the service's own choice first.
func grid(strategy string) []Point {
	points := []Point{{Strategy: strategy}}
	add := func(fusion string, r client.Ranking) {
		points = append(points, Point{Strategy: strategy, Fusion: fusion, Ranking: r})
	}
	switch strategy {
	case "hybrid":
		for _, weight := range weights {
			for _, constant := range rrfConstants {
				add("rrf", client.Ranking{RRFConstant: constant, LexicalWeight: weight})
			}
		}
		for _, weight := range scoreWeights {
			add("score", client.Ranking{LexicalWeight: weight})
		}
	case "hybrid-late":
		for _, weight := range weights {
			for _, pool := range poolDepths {
				add("", client.Ranking{PoolDepth: pool, LateLexicalWeight: weight})
			}
		}
	}
	if strategy == "hybrid" || strategy == "hybrid-late" {
		for _, depth := range depths {
			add("", client.Ranking{DenseDepth: depth, LexicalDepth: depth})
		}
	}
	return points
}

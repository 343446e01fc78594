package document

// Page is the size of a page, in points.
type Page struct {
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
}

// Box is a rectangle on a page, in points from its upper left corner.
type Box struct {
	Left   float64 `json:"left"`
	Top    float64 `json:"top"`
	Right  float64 `json:"right"`
	Bottom float64 `json:"bottom"`
}

// Place is where a block, or a part of it, stands.
type Place struct {
	Page       int     `json:"page"` // from 1
	Box        Box     `json:"box"`
	Confidence float64 `json:"confidence"` // of the kind and the order, 0 … 1; 1: the source says so
}

// Furniture is what stands on a page beside its text.
type Furniture struct {
	Kind  Kind   `json:"kind"` // Header, Footer or Watermark
	Text  string `json:"text"`
	Place Place  `json:"place"`
}

// Slides says whether the document is shown page by page: most of its pages are
// wider than high.
func (d Document) Slides() bool {
	wide := 0
	for _, p := range d.Pages {
		if p.Width > p.Height {
			wide++
		}
	}
	return 2*wide > len(d.Pages)
}

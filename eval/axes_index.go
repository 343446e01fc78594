package eval

// PageBytes is a page of a data set: its documents have none of their own.
const PageBytes = 3000

// Prices of the machine, in dollars.
type Prices struct {
	Machine float64 `json:"machine_hour"`     // an hour of the machine that builds
	Storage float64 `json:"storage_gb_month"` // 10⁹ bytes for a month
}

// IndexAxis is what an index costs, by pages of PageBytes of source text.
type IndexAxis struct {
	Pages     float64 `json:"pages"`
	Seconds   float64 `json:"build_seconds"`
	PagesPerS float64 `json:"pages_per_s"`
	PageDisk  float64 `json:"bytes_per_page"` // 0: unknown
	PageYear  float64 `json:"dollars_per_page_year"`
	Prices    Prices  `json:"prices"`
}

// newIndexAxis is nil for a run that did not write the data set itself. A
// page-year is the page's share of one build, and of the disk for twelve months.
func newIndexAxis(r Report, prices Prices) *IndexAxis {
	if r.Build == nil || r.Build.Text == 0 {
		return nil
	}
	a := IndexAxis{Pages: float64(r.Build.Text) / PageBytes, Seconds: r.Build.Seconds, Prices: prices}
	a.PagesPerS = a.Pages / a.Seconds
	a.PageDisk = float64(r.Build.Disk) / a.Pages
	a.PageYear = prices.Machine/3600/a.PagesPerS + prices.Storage*12*a.PageDisk/1e9
	return &a
}

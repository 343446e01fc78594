package filter

// Principal is who asks. Tenant comes from the identity, never from a request.
type Principal struct {
	Tenant     string
	Subject    string
	Groups     []string
	Attributes Attributes
}

// Attributes are what policies see of a principal or a document. Values are
// string, bool, int64 or []string (a set: sorted, without duplicates).
// A null is the absence of its key.
type Attributes map[string]any

package filter

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cedar-policy/cedar-go"
)

// ErrInvalidPolicies is wrapped by every refusal of a policy text.
var ErrInvalidPolicies = errors.New("invalid policies")

// Bounds on policy texts.
const (
	maxPolicyFiles     = 256
	maxPolicyBytes     = 256 * 1024      // of one file or the schema
	maxPoliciesBytes   = 2 * 1024 * 1024 // of all together
	maxPolicyNesting   = 128             // brackets inside brackets
	maxStatementBytes  = 16 * 1024       // of one policy or declaration
	maxStatementDots   = 1000
	maxPolicyNameBytes = 255
)

// Policies are validated Cedar policies. They are immutable and safe for
// concurrent use. Without any policy, and when nil, they permit nothing.
type Policies struct {
	schemaText string
	files      map[string]string
	digest     [32]byte
	schema     *policySchema
	set        *cedar.PolicySet
	groups     groups
	faults     atomic.Uint64
	lastFault  atomic.Pointer[error]
}

// ParsePolicies parses a Cedar schema, policy files (name to text) and, under
// the name GroupsFile, the hierarchy of groups, and validates the policies
// strictly against the schema. Errors wrap
// ErrInvalidPolicies and name file, line and column.
func ParsePolicies(schema string, files map[string]string) (*Policies, error) {
	p, err := parsePolicies(schema, files)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidPolicies, err)
	}
	return p, nil
}

func parsePolicies(schema string, files map[string]string) (*Policies, error) {
	if err := checkSizes(schema, files); err != nil {
		return nil, err
	}
	p := &Policies{schemaText: schema, files: maps.Clone(files), set: cedar.NewPolicySet()}
	p.digest = p.computeDigest()
	if schema == "" && len(files) == 0 {
		return p, nil
	}
	var err error
	if p.schema, err = parseSchema(schema); err != nil {
		return nil, err
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name == GroupsFile {
			problems = append(problems, p.addGroups(files[name]))
			continue
		}
		problems = append(problems, p.add(name, files[name]))
	}
	return p, errors.Join(problems...)
}

func checkSizes(schema string, files map[string]string) error {
	if len(files) > maxPolicyFiles {
		return fmt.Errorf("%d policy files: at most %d are allowed", len(files), maxPolicyFiles)
	}
	if len(schema) > maxPolicyBytes {
		return fmt.Errorf("%s: %d bytes: at most %d are allowed", SchemaFile, len(schema), maxPolicyBytes)
	}
	total := len(schema)
	for name, text := range files {
		if name == "" || len(name) > maxPolicyNameBytes {
			return fmt.Errorf("policy file %.64q: the name must have 1 to %d bytes", name, maxPolicyNameBytes)
		}
		if len(text) > maxPolicyBytes {
			return fmt.Errorf("%s: %d bytes: at most %d are allowed", name, len(text), maxPolicyBytes)
		}
		total += len(text)
	}
	if total > maxPoliciesBytes {
		return fmt.Errorf("policies take %d bytes: at most %d are allowed", total, maxPoliciesBytes)
	}
	return nil
}

// add parses and validates one file. A policy's id is its position.
func (p *Policies) add(name, text string) error {
	if err := checkShape(text); err != nil {
		return fmt.Errorf("%s:%w", name, err)
	}
	list, err := cedar.NewPolicyListFromBytes(name, []byte(text))
	if err != nil {
		return positioned(name, err)
	}
	var problems []error
	for _, policy := range list {
		at := policy.Position()
		id := fmt.Sprintf("%s:%d:%d", name, at.Line, at.Column)
		if err := errors.Join(p.schema.check(policy), checkNoDocumentID(policy)); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", id, err))
		}
		p.set.Add(cedar.PolicyID(id), policy)
	}
	return errors.Join(problems...)
}

func (p *Policies) addGroups(text string) (err error) {
	if p.groups, err = parseGroups(text); err != nil {
		return fmt.Errorf("%s: %w", GroupsFile, err)
	}
	return nil
}

// positioned makes "file:line:column: …" of the parser's error, which calls every file <input>.
func positioned(name string, err error) error {
	const anonymous = "<input>:"
	_, rest, found := strings.Cut(err.Error(), anonymous)
	position, message, spaced := strings.Cut(rest, " ")
	if !found || !spaced {
		return fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Errorf("%s:%s: %s", name, strings.TrimSuffix(position, ":"), message)
}

// checkShape keeps the recursive parser and the validator within bounds, whose
// time grows faster than a policy's length and than its longest a.b.c. What
// stands in strings and comments does not count, but that strings have bytes.
func checkShape(text string) error {
	depth, line, start, dots := 0, 1, 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '/':
			n := opaque(text[i:])
			line += strings.Count(text[i:i+n], "\n")
			if text[i] == '/' {
				start += n
			}
			i += n - 1
		case '\n':
			line++
		case ';':
			start, dots = i+1, 0
		case '.':
			dots++
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth = max(0, depth-1)
		}
		if depth > maxPolicyNesting {
			return fmt.Errorf("%d: more than %d nested brackets", line, maxPolicyNesting)
		}
		if i-start >= maxStatementBytes || dots > maxStatementDots {
			return fmt.Errorf("%d: more than %d bytes or %d dots without a semicolon: split it into several policies",
				line, maxStatementBytes, maxStatementDots)
		}
	}
	return nil
}

// opaque returns the length of the string or comment that the text begins with,
// else 1. One without an end has all the rest.
func opaque(text string) int {
	switch {
	case strings.HasPrefix(text, `"`):
		return stringLength(text)
	case strings.HasPrefix(text, "//"):
		line, _, _ := strings.Cut(text, "\n")
		return len(line)
	case strings.HasPrefix(text, "/*"):
		comment, _, _ := strings.Cut(text[2:], "*/")
		return min(len(text), len("/*")+len(comment)+len("*/"))
	}
	return 1
}

func stringLength(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// checkNoDocumentID refuses policies that name a single document: they would
// never apply, which in a forbid would silently forbid nothing. In the
// canonical text a literal has no spaces, and quotes inside strings are escaped.
func checkNoDocumentID(policy *cedar.Policy) error {
	if bytes.Contains(policy.MarshalCedar(), []byte(documentType+`::"`)) {
		return errors.New("policies cannot name a single document: use its attributes, or its reader list")
	}
	return nil
}

func (p *Policies) computeDigest() [32]byte {
	encoded := appendText(nil, p.schemaText)
	encoded = binary.AppendUvarint(encoded, uint64(len(p.files)))
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		encoded = appendText(appendText(encoded, name), p.files[name])
	}
	return sha256.Sum256(encoded)
}

// Digest identifies the text of schema and policies.
func (p *Policies) Digest() [32]byte {
	if p == nil {
		return [32]byte{}
	}
	return p.digest
}

// Len returns the number of policies.
func (p *Policies) Len() (n int) {
	if p == nil {
		return 0
	}
	for range p.set.All() {
		n++
	}
	return n
}

// Source returns the text that was parsed: schema and file name to policies.
func (p *Policies) Source() (schema string, files map[string]string) {
	if p == nil {
		return "", nil
	}
	return p.schemaText, maps.Clone(p.files)
}

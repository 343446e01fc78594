package filter_test

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/filter"
	"sluice/needs"
)

const edocumentSchema = `
entity User {
	uid?: String, role?: String, position?: String, organisation?: String, department?: String, office?: String,
	registered?: String, projects?: Set<String>, supervisor?: String, supervisee?: Set<String>, payrollingPermissions?: String
};
entity Document {
	rid?: String, type?: String, owner?: String, organisation?: String, department?: String, office?: String,
	recipients?: Set<String>, isConfidential?: String, containsPersonalInfo?: String
};
action search, send, readMetaInfo;
action read appliesTo { principal: User, resource: Document };
`

// TestEDocument turns a published attribute-based policy, rule by rule, into
// Cedar and compares all 150,000 decisions with those of another evaluator.
func TestEDocument(t *testing.T) {
	users, documents, rules := readABAC(t, needs.Data(t, "abac-policies/edocument.abac"))
	want := readPairs(t, needs.Data(t, "abac-policies/edocument.view.tsv"))
	require.Len(t, users, 500)
	require.Len(t, documents, 300)
	require.Len(t, rules, 25)
	require.Len(t, want, 15_350)

	policies := mustParse(t, edocumentSchema, strings.Join(rules, "\n"))
	var keys []string
	var changes []filter.Change
	for key, attributes := range documents {
		attributes["rid"] = key
		a := filter.Access{Readers: filter.Readers{Undeclared: true}, Attributes: parseAttributes(t, attributes)}
		changes = append(changes, filter.Change{Ordinal: uint32(len(keys)), Access: a})
		keys = append(keys, key)
	}
	view := filter.NewView("edocs", policies).Apply(changes)

	got := 0
	for user, attributes := range users {
		attributes["uid"] = user
		set, err := view.Resolve(filter.Principal{Tenant: "edocs", Subject: user, Attributes: parseAttributes(t, attributes)})
		require.NoError(t, err)
		for ordinal, key := range keys {
			if want[user+"\t"+key] != set.Contains(uint32(ordinal)) {
				t.Fatalf("%s views %s: want %v", user, key, !set.Contains(uint32(ordinal)))
			}
		}
		got += set.Len()
	}
	require.Equal(t, len(want), got)
}

var (
	abacLine  = regexp.MustCompile(`^(userAttrib|resourceAttrib|rule)\((.*)\)$`)
	abacValue = regexp.MustCompile(`(\w+)=(\{[^}]*\}|\w+)`)
)

func readABAC(t *testing.T, path string) (users, documents map[string]map[string]any, rules []string) {
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	users, documents = map[string]map[string]any{}, map[string]map[string]any{}
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		line := abacLine.FindStringSubmatch(strings.TrimSpace(scanner.Text()))
		if line == nil {
			continue
		}
		id, rest, _ := strings.Cut(line[2], ",")
		switch line[1] {
		case "userAttrib":
			users[id] = abacAttributes(rest)
		case "resourceAttrib":
			documents[id] = abacAttributes(rest)
		case "rule":
			rules = append(rules, cedarRule(t, line[2]))
		}
	}
	require.NoError(t, scanner.Err())
	return users, documents, rules
}

// organisation renames the one attribute whose name belongs to the identity.
func organisation(name string) string {
	if name == "tenant" {
		return "organisation"
	}
	return name
}

func abacAttributes(text string) map[string]any {
	attributes := map[string]any{}
	for _, pair := range abacValue.FindAllStringSubmatch(text, -1) {
		name := organisation(pair[1])
		switch {
		case pair[2] == "none":
			attributes[name] = nil
		case strings.HasPrefix(pair[2], "{"):
			attributes[name] = strings.Fields(strings.Trim(pair[2], "{}"))
		default:
			attributes[name] = pair[2]
		}
	}
	return attributes
}

// cedarRule translates "user conditions; document conditions; actions; constraint".
func cedarRule(t *testing.T, rule string) string {
	parts := strings.Split(rule, ";")
	require.Len(t, parts, 4)
	var conditions []string
	conditions = append(conditions, cedarConditions("principal", parts[0])...)
	conditions = append(conditions, cedarConditions("resource", parts[1])...)
	if constraint := strings.Fields(parts[3]); len(constraint) == 3 {
		conditions = append(conditions, cedarConstraint(t, organisation(constraint[0]), constraint[1], organisation(constraint[2])))
	}
	var actions []string
	for _, action := range strings.Fields(strings.Trim(strings.TrimSpace(parts[2]), "{}")) {
		if action == "view" {
			action = "read"
		}
		actions = append(actions, fmt.Sprintf("Action::%q", action))
	}
	if !slices.Contains(actions, `Action::"read"`) {
		return "// " + rule // Cedar refuses rules about actions that nobody can take here
	}
	return fmt.Sprintf("permit (principal, action in [%s], resource) when { %s };",
		strings.Join(actions, ", "), strings.Join(conditions, " && "))
}

var abacCondition = regexp.MustCompile(`(\w+) \[ \{([^}]*)\}`)

func cedarConditions(of, text string) []string {
	var conditions []string
	for _, condition := range abacCondition.FindAllStringSubmatch(text, -1) {
		var quoted []string
		for _, value := range strings.Fields(condition[2]) {
			quoted = append(quoted, fmt.Sprintf("%q", value))
		}
		name := organisation(condition[1])
		conditions = append(conditions, fmt.Sprintf("%s has %s && [%s].contains(%s.%s)", of, name, strings.Join(quoted, ", "), of, name))
	}
	return conditions
}

func cedarConstraint(t *testing.T, ofUser, operator, ofDocument string) string {
	user, document := "principal."+ofUser, "resource."+ofDocument
	holds := map[string]string{
		"=": user + " == " + document,
		"[": document + ".contains(" + user + ")",
		"]": user + ".contains(" + document + ")",
	}[operator]
	require.NotEmpty(t, holds, operator)
	return fmt.Sprintf("principal has %s && resource has %s && %s", ofUser, ofDocument, holds)
}

func readPairs(t *testing.T, path string) map[string]bool {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	pairs := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		pairs[line] = true
	}
	return pairs
}

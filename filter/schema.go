package filter

import (
	"fmt"

	"github.com/cedar-policy/cedar-go"
	cedarast "github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema"
	"github.com/cedar-policy/cedar-go/x/exp/schema/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"
)

// What policies speak of.
const (
	userType     cedar.EntityType = "User"
	groupType    cedar.EntityType = "Group"
	documentType cedar.EntityType = "Document"
)

var readAction = cedar.NewEntityUID("Action", "read")

// policySchema is what the policies may refer to: the shapes of users and
// documents, and the hierarchy of actions.
type policySchema struct {
	user, document resolved.RecordType
	actions        cedar.EntityMap
	validator      *validate.Validator
}

// parseSchema reads a Cedar schema. It may declare only what this package can
// supply, so that no valid policy waits for something that never comes.
func parseSchema(text string) (*policySchema, error) {
	if err := checkShape(text); err != nil {
		return nil, fmt.Errorf("%s:%w", SchemaFile, err)
	}
	var parsed schema.Schema
	parsed.SetFilename(SchemaFile)
	if err := parsed.UnmarshalCedar([]byte(text)); err != nil {
		return nil, err // names file, line and column
	}
	if err := checkCommonTypes(parsed.AST()); err != nil {
		return nil, fmt.Errorf("%s: %w", SchemaFile, err)
	}
	declared, err := parsed.Resolve()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", SchemaFile, err)
	}
	if err := checkDeclarations(declared); err != nil {
		return nil, fmt.Errorf("%s: %w", SchemaFile, err)
	}
	return &policySchema{
		user:      declared.Entities[userType].Shape,
		document:  declared.Entities[documentType].Shape,
		actions:   actionEntities(declared),
		validator: validate.New(declared, validate.WithStrict()),
	}, nil
}

// maxTypeSteps bounds the names and sets that lead from a common type to its
// primitive one.
const maxTypeSteps = 8

// checkCommonTypes refuses common types that no attribute can have. It comes
// before Resolve, which writes a type out wherever its name stands: records of
// records would grow exponentially.
func checkCommonTypes(parsed *ast.Schema) error {
	for name, namespace := range parsed.Namespaces {
		if len(namespace.CommonTypes) > 0 {
			return fmt.Errorf("namespace %s: declare its types outside", name)
		}
	}
	for name := range parsed.CommonTypes {
		if !plain(parsed.CommonTypes, ast.TypeRef(name)) {
			return fmt.Errorf("type %s: use String, Long, Bool, Set<String>, or the name of such a type (at most %d deep)", name, maxTypeSteps)
		}
	}
	return nil
}

// plain tells whether names and sets lead to a name that is not declared: a
// primitive type, or one that Resolve or checkDeclarations judge.
func plain(declared ast.CommonTypes, t ast.IsType) bool {
	for range maxTypeSteps {
		switch known := t.(type) {
		case ast.TypeRef:
			common, ok := declared[ast.Ident(known)]
			if !ok {
				return true
			}
			t = common.Type
		case ast.SetType:
			t = known.Element
		default:
			return false
		}
	}
	return false
}

func checkDeclarations(declared *resolved.Schema) error {
	for name := range declared.Enums {
		return fmt.Errorf("entity type %s: only User, Group and Document can be supplied", name)
	}
	for name, entity := range declared.Entities {
		if err := checkEntityType(name, entity); err != nil {
			return fmt.Errorf("entity type %s: %w", name, err)
		}
	}
	return checkReadAction(declared)
}

func checkEntityType(name cedar.EntityType, entity resolved.Entity) error {
	if name != userType && name != groupType && name != documentType {
		return fmt.Errorf("only User, Group and Document can be supplied")
	}
	for _, parent := range entity.ParentTypes {
		if name == documentType || parent != groupType {
			return fmt.Errorf("it is never in a %s: only users and groups are in groups", parent)
		}
	}
	if entity.Tags != nil {
		return fmt.Errorf("tags are not supplied: declare attributes")
	}
	if name == groupType && len(entity.Shape) > 0 {
		return fmt.Errorf("groups have no attributes")
	}
	for attribute, declared := range entity.Shape {
		if !supported(declared.Type) {
			return fmt.Errorf("attribute %q: use String, Long, Bool or Set<String>", attribute)
		}
	}
	return nil
}

func checkReadAction(declared *resolved.Schema) error {
	action, ok := declared.Actions[readAction]
	if !ok || action.AppliesTo == nil {
		return fmt.Errorf("action read is missing: declare `action read appliesTo { principal: User, resource: Document };`")
	}
	if len(action.AppliesTo.Context) > 0 {
		return fmt.Errorf("action read: no context is supplied")
	}
	request := cedar.Request{
		Principal: cedar.NewEntityUID(userType, "someone"),
		Action:    readAction,
		Resource:  cedar.NewEntityUID(documentType, "something"),
	}
	return validate.New(declared).Request(request)
}

func supported(declared resolved.IsType) bool {
	switch t := declared.(type) {
	case resolved.StringType, resolved.LongType, resolved.BoolType:
		return true
	case resolved.SetType:
		_, ok := t.Element.(resolved.StringType)
		return ok
	}
	return false
}

// actionEntities lists the actions with all their ancestors, so that
// `action in …` holds as declared.
func actionEntities(declared *resolved.Schema) cedar.EntityMap {
	actions := cedar.EntityMap{}
	for uid, action := range declared.Actions {
		actions[uid] = action.Entity
	}
	return actions
}

func (s *policySchema) check(policy *cedar.Policy) error {
	return s.validator.Policy("", (*cedarast.Policy)(policy.AST()))
}

// conforms reports what keeps a record from being what the shape declares.
// Attributes that are not declared do not matter: no valid policy can see them.
func conforms(record cedar.Record, shape resolved.RecordType) error {
	for name, declared := range shape {
		value, present := record.Get(name)
		switch {
		case present && !hasType(value, declared.Type):
			return fmt.Errorf("attribute %q is not of the type that the policy schema declares", name)
		case !present && !declared.Optional:
			return fmt.Errorf("attribute %q is missing: the policy schema requires it", name)
		}
	}
	return nil
}

func hasType(value cedar.Value, declared resolved.IsType) bool {
	ok := false
	switch declared.(type) {
	case resolved.StringType:
		_, ok = value.(cedar.String)
	case resolved.LongType:
		_, ok = value.(cedar.Long)
	case resolved.BoolType:
		_, ok = value.(cedar.Boolean)
	case resolved.SetType: // of strings, as no other set is made or declared
		_, ok = value.(cedar.Set)
	}
	return ok
}

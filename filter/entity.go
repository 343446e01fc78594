package filter

import (
	"fmt"

	"github.com/cedar-policy/cedar-go"
)

// Attributes of users that the identity decides, whatever their claims say.
const (
	subjectAttribute = "subject"
	groupsAttribute  = "groups"
)

// documentID stands for every document: policies tell documents apart by
// attributes only, so one decision holds for a whole access class.
const documentID = "document"

// entities is the world of one decision: a user, a document, the groups and
// the actions.
type entities struct {
	user, document  cedar.Entity
	groups, actions cedar.EntityMap
}

// Get implements cedar.EntityGetter.
func (e *entities) Get(uid cedar.EntityUID) (cedar.Entity, bool) {
	switch uid {
	case e.user.UID:
		return e.user, true
	case e.document.UID:
		return e.document, true
	}
	if uid.Type == groupType {
		return e.groups.Get(uid)
	}
	return e.actions.Get(uid)
}

// userEntity is the principal as policies see it.
func userEntity(p Principal) (cedar.Entity, error) {
	values, err := cedarValues(p.Attributes)
	if err != nil {
		return cedar.Entity{}, err
	}
	values[tenantAttribute] = cedar.String(p.Tenant)
	values[subjectAttribute] = cedar.String(p.Subject)
	values[groupsAttribute] = cedarSet(p.Groups)
	parents := make([]cedar.EntityUID, len(p.Groups))
	for i, group := range p.Groups {
		parents[i] = cedar.NewEntityUID(groupType, cedar.String(group))
	}
	return cedar.Entity{
		UID:        cedar.NewEntityUID(userType, cedar.String(p.Subject)),
		Parents:    cedar.NewEntityUIDSet(parents...),
		Attributes: cedar.NewRecord(values),
	}, nil
}

// documentRecord is what policies see of every document of an access class.
func documentRecord(tenant string, a Attributes) (cedar.Record, error) {
	values, err := cedarValues(a)
	if err != nil {
		return cedar.Record{}, err
	}
	values[tenantAttribute] = cedar.String(tenant)
	return cedar.NewRecord(values), nil
}

func documentEntity(record cedar.Record) cedar.Entity {
	return cedar.Entity{UID: cedar.NewEntityUID(documentType, documentID), Attributes: record}
}

func cedarValues(a Attributes) (cedar.RecordMap, error) {
	values := make(cedar.RecordMap, len(a)+3)
	for key, value := range a {
		switch v := value.(type) {
		case nil: // a null is absent
		case string:
			values[cedar.String(key)] = cedar.String(v)
		case bool:
			values[cedar.String(key)] = cedar.Boolean(v)
		case int64:
			values[cedar.String(key)] = cedar.Long(v)
		case []string:
			values[cedar.String(key)] = cedarSet(v)
		default:
			return nil, fmt.Errorf("attribute %q has type %T: use ParseAttributes", key, value)
		}
	}
	return values, nil
}

func cedarSet(texts []string) cedar.Set {
	values := make([]cedar.Value, len(texts))
	for i, text := range texts {
		values[i] = cedar.String(text)
	}
	return cedar.NewSet(values...)
}

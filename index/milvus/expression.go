package milvus

import (
	"slices"
	"strconv"
)

// field is a column of a collection.
type field string

const (
	rowField      field = "row"      // primary key: the store's row number
	documentField field = "document" // ordinal
	classField    field = "class"    // that the document had when it was written
	bucketField   field = "bucket"   // of the class; partition key
	epochField    field = "epoch"    // of the batch that wrote the row
	vectorField   field = "vector"
)

// expression is a filter in the server's language. It is made in this file
// alone, of numbers alone: nothing that came from outside is ever in its text.
// The zero value matches nothing, and is never sent: its text would be that of
// everything, and servers disagree on empty lists.
type expression struct {
	text string
	all  bool
}

// everything is said where a filter would keep nothing out; the answer's hits
// are looked at one by one all the same.
func everything() expression { return expression{all: true} }

func (e expression) isNothing() bool { return e.text == "" && !e.all }

// in matches the rows whose field is one of the values.
func in[T uint32 | int64](f field, values []T) expression { return list(f, " in [", values) }

// notIn matches the rows whose field is none of the values.
func notIn[T uint32 | int64](f field, values []T) expression {
	if len(values) == 0 {
		return everything()
	}
	return list(f, " not in [", values)
}

func list[T uint32 | int64](f field, operator string, values []T) expression {
	if len(values) == 0 {
		return expression{}
	}
	text := slices.Grow([]byte(nil), len(f)+len(operator)+8*len(values))
	text = append(append(text, f...), operator...)
	for i, v := range values {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(v), 10)
	}
	return expression{text: string(append(text, ']'))}
}

// between matches the rows whose field is in [from, to).
func between(f field, from, to int64) expression {
	text := append([]byte(f), " >= "...)
	text = strconv.AppendInt(text, from, 10)
	text = append(append(append(text, " && "...), f...), " < "...)
	return expression{text: string(strconv.AppendInt(text, to, 10))}
}

const buckets = 64 // values of the partition key

func bucketOf(class int64) int64 { return int64(uint64(class) % buckets) }

// inClasses matches the rows of the classes. It does not name their buckets: a
// server that looks into those partitions alone (2.3.5 does) returns rows that
// are not the best.
func inClasses(classes []int64) expression { return in(classField, classes) }

// or matches what either does.
func (e expression) or(other expression) expression {
	switch {
	case e.all || other.isNothing():
		return e
	case other.all || e.isNothing():
		return other
	}
	return expression{text: "(" + e.text + ") || (" + other.text + ")"}
}

// String is what the server is sent: "" for everything.
func (e expression) String() string { return e.text }

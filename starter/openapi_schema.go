package starter

import (
	"reflect"
	"strings"
	"time"
)

// schema is a JSON Schema, as OpenAPI 3.1 writes one.
type schema map[string]any

var knownFormats = map[string]string{"_at": "date-time", "now": "date-time", "as_of": "date-time", "at": "date-time", "until": "date-time"}

// schemaOf is the schema of what encoding/json makes of a type.
func schemaOf(t reflect.Type) schema {
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return schema{"type": "integer", "format": "int64"}
	case reflect.Slice:
		return schema{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return schema{"type": "string", "format": "date-time"}
		}
		members, required := schema{}, []string{}
		structMembers(t, members, &required)
		if t == reflect.TypeFor[stockView]() { // while its gate is closed a SKU has no counters
			required = []string{"sku", "state", "as_of"}
		}
		return schema{"type": "object", "properties": members, "required": required}
	}
	return schema{} // anything
}

func structMembers(t reflect.Type, members schema, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			structMembers(f.Type, members, required)
			continue
		case name == "" || name == "-":
			continue
		}
		s := schemaOf(f.Type)
		optional := strings.Contains(options, "omit")
		if f.Type.Kind() == reflect.Pointer && !optional {
			s = schema{"anyOf": []schema{s, {"type": "null"}}}
		}
		for suffix, format := range knownFormats {
			if s["type"] == "string" && (name == suffix || strings.HasPrefix(suffix, "_") && strings.HasSuffix(name, suffix)) {
				s["format"] = format
			}
		}
		members[name] = s
		if !optional {
			*required = append(*required, name)
		}
	}
}

// A body is written down by hand: what a request may hold is read member by member.
type member struct {
	name     string
	required bool
	schema   schema
}

func must(name string, s schema) member { return member{name, true, s} }
func may(name string, s schema) member  { return member{name, false, s} }

func text(most int) schema { return schema{"type": "string", "minLength": 1, "maxLength": most} }

func between(least, most int64) schema {
	return schema{"type": "integer", "format": "int64", "minimum": least, "maximum": most}
}

func object(members ...member) schema {
	properties, required := schema{}, []string{}
	for _, m := range members {
		if properties[m.name] = m.schema; m.required {
			required = append(required, m.name)
		}
	}
	return schema{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

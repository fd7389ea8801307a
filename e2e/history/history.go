// Package history reads the histories that the end-to-end stories leave in
// Temporal, as text for people and as files for replay tests.
package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Of is all events of a run; an empty run id means the latest.
func Of(ctx context.Context, c client.Client, id, runID string) (*historypb.History, error) {
	h := &historypb.History{}
	events := c.GetWorkflowHistory(ctx, id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("history of %s: %w", id, err)
		}
		h.Events = append(h.Events, e)
	}
	return h, nil
}

// private are fields that name the machine that made a history.
var private = map[protoreflect.Name]string{"identity": "story", "worker_control_task_queue": "", "stack_trace": ""}

// JSON is a history for a replayer, one event a line, without what names the
// machine that it was made on.
func JSON(h *historypb.History) ([]byte, error) {
	h = proto.CloneOf(h)
	err := protorange.Range(h.ProtoReflect(), func(at protopath.Values) error {
		m, ok := at.Index(-1).Value.Interface().(protoreflect.Message)
		if !ok {
			return nil
		}
		for name, other := range private {
			if f := m.Descriptor().Fields().ByName(name); f != nil && f.Kind() == protoreflect.StringKind && m.Has(f) {
				m.Set(f, protoreflect.ValueOfString(other))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := bytes.NewBufferString("{\"events\":[")
	for i, e := range h.GetEvents() {
		raw, err := protojson.Marshal(e)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
		if err := json.Compact(out, raw); err != nil { // protojson puts in random spaces
			return nil, err
		}
	}
	out.WriteString("\n]}\n")
	return out.Bytes(), nil
}

// Text is a history for people, one event a line: its type, what it names, and
// its summary, without the random ends of ids. Payloads must be plain.
func Text(h *historypb.History) string {
	var b strings.Builder
	timers := map[int64]string{} // summaries by the event that started it
	for _, e := range h.GetEvents() {
		line := strings.TrimPrefix(e.GetEventType().String(), "EVENT_TYPE_")
		if name := named(e); name != "" {
			line += " " + name
		}
		summary := text(e.GetUserMetadata().GetSummary())
		if a := e.GetTimerFiredEventAttributes(); a != nil {
			summary = timers[a.GetStartedEventId()]
		}
		timers[e.GetEventId()] = summary
		if summary != "" {
			line += fmt.Sprintf(" %q", summary)
		}
		b.WriteString(ids.ReplaceAllString(line, "${1}_…") + "\n")
	}
	return b.String()
}

var ids = regexp.MustCompile(`(hold|entry|payment)_[a-z2-7]{26}`)

func named(e *historypb.HistoryEvent) string {
	switch {
	case e.GetWorkflowExecutionStartedEventAttributes() != nil:
		return e.GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()
	case e.GetWorkflowExecutionSignaledEventAttributes() != nil:
		return e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName()
	case e.GetWorkflowExecutionUpdateAcceptedEventAttributes() != nil:
		return e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput().GetName()
	case e.GetActivityTaskScheduledEventAttributes() != nil:
		return e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
	case e.GetMarkerRecordedEventAttributes() != nil:
		a := e.GetMarkerRecordedEventAttributes()
		var local struct{ ActivityType string }
		if data := a.GetDetails()["data"].GetPayloads(); len(data) > 0 {
			_ = json.Unmarshal(data[0].GetData(), &local) // other markers have other data
		}
		return strings.TrimSpace(a.GetMarkerName() + " " + local.ActivityType)
	case e.GetUpsertWorkflowSearchAttributesEventAttributes() != nil:
		var all []string
		for name, p := range e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields() {
			all = append(all, name+"="+text(p))
		}
		return strings.Join(all, " ")
	default:
		return ""
	}
}

// text is a payload that holds a JSON text.
func text(p *commonpb.Payload) string {
	var s string
	if json.Unmarshal(p.GetData(), &s) != nil {
		return string(p.GetData())
	}
	return s
}

// Failed says which workflow task of a history did not end well, or "". A task
// that the server takes back is no failure, it is done again: a message came
// while the run was closing, or too many came while the task ran.
func Failed(h *historypb.History) string {
	for _, e := range h.GetEvents() {
		switch a := e.GetWorkflowTaskFailedEventAttributes(); a.GetCause() {
		case enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNSPECIFIED,
			enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, enumspb.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND:
		default:
			return fmt.Sprintf("event %d: a workflow task failed: %s %s", e.GetEventId(), a.GetCause(), a.GetFailure().GetMessage())
		}
		if a := e.GetWorkflowTaskTimedOutEventAttributes(); a.GetTimeoutType() == enumspb.TIMEOUT_TYPE_START_TO_CLOSE {
			return fmt.Sprintf("event %d: a workflow task timed out", e.GetEventId())
		}
	}
	return ""
}

// Count counts the events of a type.
func Count(h *historypb.History, kind enumspb.EventType) int {
	n := 0
	for _, e := range h.GetEvents() {
		if e.GetEventType() == kind {
			n++
		}
	}
	return n
}

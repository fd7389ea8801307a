package check

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// A step of the gate that failed is no answer: whoever was not answered does not know.
func TestAFailedStepIsNoAnswer(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	marker := func(seconds int, failure *failurepb.Failure) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{
			EventType: enumspb.EVENT_TYPE_MARKER_RECORDED, EventTime: timestamppb.New(at.Add(time.Duration(seconds) * time.Second)),
			Attributes: &historypb.HistoryEvent_MarkerRecordedEventAttributes{
				MarkerRecordedEventAttributes: &historypb.MarkerRecordedEventAttributes{Failure: failure},
			},
		}
	}
	var w Workflow
	require.NoError(t, w.read(marker(1, &failurepb.Failure{Message: "gate unavailable"}), nil))
	require.Zero(t, w.Knew)
	require.NoError(t, w.read(marker(2, nil), nil))
	require.NoError(t, w.read(marker(3, nil), nil))
	require.Equal(t, at.Add(2*time.Second), w.Knew)
}

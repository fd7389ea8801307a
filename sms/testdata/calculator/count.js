// Reads a JSON list of texts, writes a JSON list of [encoding, segments].
const { SegmentedMessage } = require('sms-segments-calculator');

const texts = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const counts = texts.map((text) => {
  const message = new SegmentedMessage(text);
  return [message.encodingName, message.segmentsCount];
});
process.stdout.write(JSON.stringify(counts));

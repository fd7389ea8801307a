-- read: one record as it is this instant; writes nothing.
-- ARGV +1 "hold" or "entry", +2 id.
-- Answers {"ok" or "unknown", 0, ms left or position, ms now, 0, record}.
if SHUT then return SHUT end
local id = arg(2)
if arg(1) == 'entry' then
  local e = get_entry(id)
  if not e then return { 'unknown', 0, 0, NOW, 0, '' } end
  return { 'ok', 0, position(id, e), NOW, 0, cjson.encode(e) }
end
local h = get_hold(id)
if not h then return { 'unknown', 0, 0, NOW, 0, '' } end
if h[H_STATE] == 'provisional' and h[H_DEADLINE] <= NOW then
  h[H_STATE] = h[H_ENTRY] == '' and 'swept' or 'offered'
  if h[H_ENTRY] ~= '' then
    h[H_DEADLINE] = h[H_BACK] == 1 and h[H_UNTIL] or math.max(h[H_UNTIL], NOW + BACK_MS)
  end
end
return { 'ok', 0, math.max(0, h[H_DEADLINE] - NOW), NOW, 0, cjson.encode(h) }

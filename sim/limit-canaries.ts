/** Bugs planted in limits and throttles; see `canaries.ts`. */
import { type Canary, canary, change, lane } from './planted.ts'

const gates = 'core/limits/gates.js'
const throttle = 'core/limits/throttle.js'

export const LIMITS: readonly Canary[] = [
  canary(
    'a blocked job is not ended when its deadline passes',
    'P15',
    change(
      'stores/sqlite/statements/shed.js',
      `${lane('ready')}, ${lane('blocked')})`,
      `${lane('ready')})`,
    ),
  ),
  canary(
    'a limit frees a slot twice',
    'P13',
    change(gates, 'gate.used - stopped)', 'gate.used - 2 * stopped)'),
  ),
  canary(
    'a limit frees the slot of a stale holder',
    'P13',
    change(
      'stores/sqlite/apply.js',
      'if (connection.run(UPDATE_SUCCEEDED, job.state, fact.at, ...fence, own) === 0)',
      'if (own !== null) pending.free([own]);\n    ' +
        'if (connection.run(UPDATE_SUCCEEDED, job.state, fact.at, ...fence, own) === 0)',
    ),
  ),
  canary(
    'a limit frees no slot when a lease expires',
    'P13',
    change(
      'stores/verbs/changes.js',
      "if (own && laneOf(lifecycle, job, at) !== 'held')",
      "if (own && laneOf(lifecycle, job, at) !== 'held' && job.crashes === 0)",
    ),
  ),
  canary(
    'a limit never makes ready who waits',
    'P15',
    change(gates, 'moves: gate.waiting ? roomOf(after, settings, now) : 0', 'moves: 0'),
    change(gates, 'return { gate: look, moves };', 'return { gate: look, moves: 0 };'),
  ),
  canary(
    'a limit forgets who waits behind the first',
    'P15',
    change('stores/verbs/gates.js', 'if (!left)', 'if (byGate.has(gate.key))'),
  ),
  canary(
    'a limit keeps jobs back without a note that they wait',
    'P15',
    change(
      gates,
      "gates.set(key, { ...gate, waiting: true });\n        return { kind: 'blocked', by: key };",
      "return { kind: 'blocked', by: key };",
    ),
  ),
  canary(
    'a limit does not count claims',
    'P13',
    change(gates, 'used: gate.used + 1', 'used: gate.used'),
  ),
  canary(
    'a limit is passed by the fast path of claims',
    'P13',
    change('stores/sqlite/claim.js', 'AND limit_key IS NULL`);', '`);'),
  ),
  canary(
    'a limit of an operator is lost at the next deploy',
    'P13',
    change(
      'stores/limit-records.js',
      'const after = { ...before, max, periodMs, burst: own, version, declaredAt: now };',
      'const after = { ...before, max, periodMs, burst: own, version, declaredAt: now, ' +
        'override: null };',
    ),
    change('stores/limit-records.js', 'if (isSame && version === before.version)', 'if (false)'),
  ),
  canary(
    'a limit of starts counts by windows of fixed edges',
    'P13',
    change(
      throttle,
      'return Math.ceil((tat + (units - rate.burst) * unitTime(rate)) / 1000);',
      'const edge = Math.floor(tat / 1000);\n    ' +
        'return (tat % 1000) + units <= rate.limit ? edge : edge + rate.periodMs;',
    ),
    change(
      throttle,
      'return Math.max(tat ?? 0, now * 1000) + units * unitTime(rate);',
      'const edge = Math.floor(now / rate.periodMs) * rate.periodMs * 1000;\n    ' +
        'return Math.max(tat ?? 0, edge) + units;',
    ),
  ),
  canary(
    'a limit of starts that a handler has closed is open',
    'P13',
    change(
      gates,
      'const opens = Math.max(gate.closedUntil ?? 0, rate ? startAt(rate, gate.tat, units) : 0);',
      'const opens = rate ? startAt(rate, gate.tat, units) : 0;',
    ),
  ),
]

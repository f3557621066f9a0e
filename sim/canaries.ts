/**
 * Bugs that are planted on purpose, each in a copy of the built package: so the simulator is shown
 * to catch what it is there for, and nothing of them is in the package itself. A canary names the
 * promise that its bug breaks, and counts as caught only where that very promise was found broken.
 *
 * Each replaces text that must stand exactly once in its file. One that no longer fits fails, and
 * is brought up to date with the code that it spoils.
 */

import { ADMISSION } from './admission-canaries.ts'
import { FLOWS } from './flow-canaries.ts'
import { GROUPS } from './group-canaries.ts'
import { JOB_CANARIES } from './job-canaries.ts'
import { LIMITS } from './limit-canaries.ts'
import { ORDER } from './order-canaries.ts'
import { type Canary, canary, change, core, lane, sqlite } from './planted.ts'
import { RETENTION } from './retention-canaries.ts'
import { SCHEDULES } from './schedule-canaries.ts'
import { WAITS } from './wait-canaries.ts'

const OWNERSHIP: readonly Canary[] = [
  canary(
    'a holder need not show its fence',
    'P4',
    change(core('fence'), 'if (fence.attempt !== job.attempt)', 'if (false)'),
    change(core('fence'), 'if (fence.claim !== job.execution.claim)', 'if (false)'),
  ),
  canary(
    'a holder may write when its lease has ended',
    'P4',
    change(core('fence'), 'return isExpired(job, now) ?', 'return false ?'),
  ),
  canary(
    'a late failure counts, whoever holds the job',
    'P4',
    change(
      core('decide'),
      "if ('fence' in command && command.fence !== undefined)",
      "if ('fence' in command && command.fence !== undefined && command.kind !== 'fail')",
    ),
  ),
  canary(
    'leases are renewed by id alone',
    'P4',
    change(
      sqlite('heartbeat'),
      'WHERE rid = ? AND attempt = ? AND claim = ?',
      'WHERE rid = ? AND ? > 0 AND ? IS NOT NULL',
    ),
  ),
  canary(
    'jobs are claimed that somebody holds',
    'P2',
    change(
      sqlite('claim'),
      `WHERE lane = ${lane('ready')} AND queue = ?1`,
      'WHERE lane IN (2, 3) AND queue = ?1',
    ),
    change(sqlite('claim'), 'AND state = ?2 ->> CAST(machine AS TEXT)', 'AND ?2 IS NOT NULL'),
  ),
  canary(
    'leases are taken back before they end',
    'P7',
    change(sqlite('statements/recover'), 'lease_until <= ?1', 'lease_until <= ?1 + 1500'),
    change(core('decide-attempt'), 'if (!isExpired(job, context.now))', 'if (false)'),
  ),
  canary(
    'expired leases are looked for only at the start',
    'P7',
    change(
      'engine/worker/recovery.js',
      'this.#at = this.#now() + this.#everyMs;',
      'this.#at = this.#now() + 1e12;',
    ),
  ),
  canary(
    'leases are never renewed',
    'P7',
    change(
      'engine/worker/heartbeat.js',
      'await this.#store.heartbeat(beats, this.#leaseMs)',
      '{ lost: [], cancelling: [] }',
    ),
  ),
]

const TIME: readonly Canary[] = [
  canary(
    'every process goes by its own wall clock',
    'P11',
    change(
      sqlite('clock'),
      'if (state === undefined)\n            return Math.floor(this.#host.wall());',
      'if (true)\n            return Math.floor(this.#host.wall());',
    ),
  ),
  canary(
    'leases are not extended when the time of the file moves forward',
    'P7',
    change(sqlite('clock'), 'connection.run(sql, movedMs, at - movedMs)', ''),
  ),
  canary(
    'the time of a file is set back with the wall clock',
    'P11',
    change(
      'core/time-base.js',
      'const behindMs = aheadMs > STEP_MS ? aheadMs : 0;\n    const reason',
      'const behindMs = 0;\n    const reason',
    ),
    change(
      'core/time-base.js',
      'const offsetMs = Math.ceil(nowMs - elapsedMs);\n    return { ...base, offsetMs',
      'const offsetMs = Math.ceil(wallMs - elapsedMs);\n    return { ...base, offsetMs',
    ),
    change(sqlite('clock'), 'this.#latest = Math.max(this.#latest, now);', 'this.#latest = now;'),
  ),
]

const BUDGETS: readonly Canary[] = [
  canary(
    'attempts are not counted when they begin',
    'P5',
    change(sqlite('claim'), 'seq = seq + 1, attempt = attempt + 1,', 'seq = seq + 1,'),
  ),
  canary(
    'a job may crash as often as it likes',
    'P5',
    change(core('decide-attempt'), 'if (spent >= max)', 'if (false)'),
  ),
  canary(
    'a job may fail as often as it likes',
    'P5',
    change(core('decide-attempt'), 'if (job.failures >= retry.max)', 'if (false)'),
  ),
  canary(
    'crashes cost nothing',
    'P15',
    change(
      core('decide-attempt'),
      'const fields = { error, reason: abort, spends, runAt: context.now + delay }',
      'const fields = { error, reason: abort, runAt: context.now + delay }',
    ),
  ),
  canary(
    'retries are not spread',
    'P11',
    change('core/retry.js', 'policy.jitter * random * Math.max(grown, crowdMs)', '0'),
  ),
  canary(
    'jobs are claimed before they are due',
    'P11',
    change(
      sqlite('claim'),
      `WHERE lane = ${lane('ready')} AND queue = ?1 AND run_at <=`,
      'WHERE lane IN (1, 2) AND queue = ?1 AND run_at - 5000 <=',
    ),
    change(
      sqlite('claim'),
      `EXISTS (SELECT 1 FROM pawl_jobs WHERE lane = ${lane('ready')})\n`,
      'EXISTS (SELECT 1 FROM pawl_jobs WHERE lane IN (1, 2))\n',
    ),
    change(
      sqlite('claim'),
      `SELECT min(queue) FROM pawl_jobs WHERE lane = ${lane('ready')}\n`,
      'SELECT min(queue) FROM pawl_jobs WHERE lane IN (1, 2)\n',
    ),
  ),
]

const RECORDS: readonly Canary[] = [
  canary(
    'what a failed transaction has written is committed',
    'P1',
    change(
      sqlite('transaction'),
      'extend: (tx) => tx,\n        work,',
      'extend: (tx) => tx,\n        work: async (tx) => work(tx).catch((failed) => ({ failed })),',
    ),
    change(
      sqlite('store'),
      '// Jobs may have joined it.',
      'if (value?.failed) throw value.failed;',
    ),
  ),
  canary(
    'writes are acknowledged before they are durable',
    'P1',
    change(
      sqlite('writer'),
      'this.#end();',
      `if (group[0].verb !== 'enqueue') this.#end();
            else this.#environment.timers.after(30, () => { try { this.#end(); } catch {} });`,
    ),
  ),
  canary(
    'cancellations are answered and not written',
    'P1',
    change(
      'stores/verbs/changes.js',
      'const since = enteredAt(read.job);',
      "if (command.kind === 'cancel') return { kind: 'done', job: read.job, fact };\n" +
        '        const since = enteredAt(read.job);',
    ),
  ),
  canary(
    'some facts are not written',
    'P9',
    change(
      sqlite('apply'),
      'written.add(ref, fact, payload);',
      "if (fact.trigger !== 'expire')\n            written.add(ref, fact, payload);",
    ),
  ),
  canary(
    'a column does not follow the facts',
    'P9',
    change('stores/columns.js', '        job.failures,\n', '        0,\n'),
  ),
  canary(
    'facts are rewritten',
    'P8',
    change(
      'stores/sqlite/migrations/0001-ledger.js',
      'CREATE TRIGGER pawl_ledger_is_never_updated BEFORE UPDATE ON pawl_ledger\n',
      'CREATE TRIGGER pawl_ledger_is_never_updated BEFORE UPDATE ON pawl_ledger WHEN 0\n',
    ),
    change(
      sqlite('statements/promote'),
      'lockDue: (at, limit) => ',
      'lockDue: (at, limit) => at.connection.run(' +
        "'UPDATE pawl_ledger SET worker = NULL WHERE kind = 20') * 0 || ",
    ),
  ),
  canary(
    'retention removes jobs that have not ended',
    'P8',
    change(
      'stores/sqlite/migrations/0001-ledger.js',
      'BEFORE DELETE ON pawl_jobs WHEN OLD.lane <> 5',
      'BEFORE DELETE ON pawl_jobs WHEN 0',
    ),
    change(
      sqlite('statements/prune'),
      `WHERE lane = ${lane('ended')} AND ended_at < ?`,
      'WHERE created_at < ?',
    ),
    change(sqlite('statements/prune'), 'ORDER BY ended_at, rid', 'ORDER BY rid'),
    change(
      sqlite('statements/prune'),
      `WHERE rid IN \${LISTED} AND lane = ${lane('ended')}`,
      `WHERE rid IN \${LISTED}`,
    ),
  ),
  canary(
    'one key has several jobs',
    'P12',
    change(
      'stores/sqlite/migrations/0001-ledger.js',
      'CREATE UNIQUE INDEX pawl_jobs_key',
      'CREATE INDEX pawl_jobs_key',
    ),
    change(sqlite('enqueue'), 'return key === undefined ?', 'return true ?'),
  ),
  canary(
    'errors of the database have no code',
    'P16',
    change(sqlite('writer'), 'throw group[0]?.alone ?', 'throw true ?'),
  ),
]

const VERSIONS: readonly Canary[] = [
  canary(
    'migrations write no fact',
    'P9',
    change(
      'stores/verbs/changes.js',
      'for (const fact of facts)\n            this.facts.push(',
      'for (const fact of [])\n            this.facts.push(',
    ),
  ),
  canary(
    'jobs of an old version are not claimed by the release that replaced it',
    'P15',
    change('stores/machines.js', 'this.#routes = new Map(routes);', 'this.#routes = new Map();'),
  ),
]

const EFFECTS: readonly Canary[] = [
  canary(
    'a commit that is asked again is done again',
    'P3',
    change(sqlite('commit'), "if (decision.kind === 'same')", 'if (false)'),
    // The row of a job that has succeeded cannot be changed, so its progress would undo the rest.
    change(
      sqlite('commit'),
      'if (progress !== undefined)',
      "if (after.kind === 'done' && progress)",
    ),
  ),
  canary(
    'a commit forgets an effect',
    'P10',
    change(
      sqlite('commit'),
      'insertEffects(connection, end, begun, effects)',
      'insertEffects(connection, end, begun, effects.slice(1))',
    ),
  ),
  canary(
    'effects count as delivered when they are taken',
    'P10',
    change(
      sqlite('statements/outbox'),
      'SET claim = ?1, run_at = ?2,',
      "SET state = 'delivered', claim = ?1, run_at = ?2,",
    ),
    change(
      sqlite('statements/effects'),
      "WHERE eid = ? AND claim = ? AND state = 'pending'",
      'WHERE eid = ? AND claim = ?',
    ),
  ),
  canary(
    'effects whose dispatcher died are never taken again',
    'P10',
    change(
      sqlite('statements/outbox'),
      "WHERE state = 'pending' AND type = ? AND run_at <= ?",
      "WHERE state = 'pending' AND claim IS NULL AND type = ? AND run_at <= ?",
    ),
  ),
  canary(
    'results of steps are not remembered',
    'steps',
    change('engine/worker/steps.js', '(await this.#load()).get(keyOf(name, n))', 'undefined'),
  ),
]

const LIVENESS: readonly Canary[] = [
  canary(
    'a damaged row is not set aside',
    'P15',
    change('stores/damage.js', 'if (!isDamage(error) || repeated >= REPEAT_MAX)', 'if (true)'),
    change('stores/isolation.js', 'await this.setAside([]);', ''),
  ),
  canary(
    'idle workers wake up by hints alone',
    'P15',
    change(
      'engine/worker/worker.js',
      'await this.#nudge.wait(Math.max(1, Math.min(jittered, until)))',
      'await this.#nudge.wait(1e9)',
    ),
  ),
  canary(
    'reports that the store did not take are dropped',
    'P15',
    change('engine/worker/reports.js', 'this.#waiting = [...sent, ...this.#waiting];', ''),
    // Outages that outlast a whole call are rare: the first reports of each worker meet one.
    change(
      'engine/worker/reports.js',
      '.settle(settlements, request)',
      `.settle(...(sent.length > 0 && !this.hadOutage ? [[]] : [settlements, request]))
            .then((settled) => {
            if (this.hadOutage || sent.length === 0) return settled;
            this.hadOutage = true;
            throw new Error('the store is away');
        })`,
    ),
  ),
  canary(
    'free slots stay promised to a call that failed',
    'P15',
    change(
      'engine/worker/flights.js',
      'keepPromise();\n        return started;',
      'return started;',
    ),
    // The first claim of each worker fails, and it is for all of its slots.
    change(
      'engine/worker/flights.js',
      'onClaimed(await worker.store.claim({ ...request, onFound }));',
      `if (!this.hadOutage) {
                this.hadOutage = true;
                throw new Error('the store is away');
            }
            onClaimed(await worker.store.claim({ ...request, onFound }));`,
    ),
  ),
]

const FILES: readonly Canary[] = [
  canary(
    'a snapshot is written before its events',
    'P9',
    change(
      'runs/journal/folder/writer.js',
      'await file.appendDurably(bytes);',
      'if (snapshot !== undefined) await this.persistSnapshot(snapshot);\n' +
        '            await file.appendDurably(bytes);',
    ),
  ),
  canary(
    'events are not synced before they are acknowledged',
    'P1',
    change(
      'runs/journal/folder/writer.js',
      'await file.appendDurably(bytes);',
      'await file.append(bytes);',
    ),
  ),
  canary(
    'contents are not synced before they get their names',
    'P1',
    change('runs/journal/folder/disk.js', 'await handle.sync();', ''),
  ),
  canary(
    'a torn end is written on',
    'P9',
    change('runs/journal/folder/tail.js', 'if (log.torn.length === 0)', 'if (true)'),
  ),
  canary(
    'damage in the middle of a log is passed over',
    'P16',
    change('runs/journal/log-replay.js', 'if (event.prev !== this.#lastHash)', 'if (false)'),
  ),
  canary(
    'rewinding gives rounds of fixing back',
    'P5',
    change(
      'core/run/evolve.js',
      'run_state,\n        stable_trail',
      'run_state,\n        fix_attempts: 0,\n        stable_trail',
    ),
  ),
  canary(
    'entering FIXING spends a round, whether or not its work runs',
    'P5',
    change('core/run/decide.js', '{ fix_pending: true }', '{ fixing: true }'),
  ),
  canary(
    'the work of a fix is not counted',
    'P5',
    change('core/run/decide.js', "    'finish-item',\n", ''),
  ),
  canary(
    'a changed input gives no rounds of fixing back',
    'P5',
    change('core/run/evolve.js', '{ fields: { fix_attempts: 0 } }', '{}'),
  ),
  canary(
    'finished items are begun again',
    'P14',
    change(
      'core/run/staleness.js',
      'if (item === undefined)',
      "if (item === undefined || item.status === 'finished')",
    ),
  ),
]

const DOCTOR: readonly Canary[] = [
  canary(
    'the doctor mends a job and leaves no fact',
    'P2',
    change(sqlite('statements/mend'), 'appendFact(connection, Number(ref), fact);', ''),
  ),
  canary(
    'the doctor does not see a gap in a ledger',
    'P8',
    change(
      'doctor/checks/ledger-is-whole.js',
      '...(foldFault === undefined ? [] : [{ what: foldFault }]),',
      '',
    ),
  ),
  canary(
    'what a job is after a repair is not believed',
    'P8',
    change(core('evolve'), 'if (fact.rebased !== undefined) {', 'if (false) {'),
  ),
  canary(
    'the doctor does not see that a job has no row',
    'P1',
    change('doctor/checks/jobs-have-rows.js', 'row !== null', 'true'),
  ),
]

/** All of them. */
export const CANARIES: readonly Canary[] = [
  ...[OWNERSHIP, TIME, JOB_CANARIES, BUDGETS, RECORDS, VERSIONS, EFFECTS, LIVENESS].flat(),
  ...[FILES, DOCTOR, SCHEDULES, ADMISSION, LIMITS, GROUPS, ORDER, RETENTION, WAITS, FLOWS].flat(),
]

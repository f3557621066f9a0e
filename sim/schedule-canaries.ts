/** Bugs of schedules that are planted on purpose; see `canaries.ts`. */
import { type Canary, canary, change } from './planted.ts'

const FIRING = 'stores/verbs/firing.js'
const FIRE = 'stores/verbs/fire.js'
const TABLES = 'stores/verbs/schedule-tables.js'
const PLAN = 'core/schedule/plan.js'

const ONE_TRANSACTION =
  "return this.#access.change('schedules.fire', (tx) => " +
  'fireSchedules(tx, limit, ticksOf, trace));'

/** The jobs and the records of ticks in a transaction after that of their cursors. */
const TWO_TRANSACTIONS = `
  const later = [];
  const firing = await this.#access.change('schedules.fire', (tx) =>
    fireSchedules(Object.assign(Object.create(tx), {
      *createJobs(items, by) {
        later.push((tx) => tx.createJobs(items, by));
        return items.map(({ command }) => ({ kind: 'created', job: { id: command.jobId } }));
      },
      *recordSchedules(records) {
        later.push((tx) => tx.recordSchedules(records));
        return records.map(() => 1);
      },
    }), limit, ticksOf));
  await this.#access.change('schedules.fire', function* (tx) {
    for (const write of later) yield* write(tx);
  });
  return { ...firing, jobs: [] };`

export const SCHEDULES: readonly Canary[] = [
  canary(
    'the cursor of a schedule does not move: its ticks come again',
    'P17',
    change(FIRING, 'this.#cursor = cursor;', ''),
  ),
  canary(
    'the cursor of a schedule moves before the job is made: a crash loses the tick',
    'P17',
    change(TABLES, ONE_TRANSACTION, TWO_TRANSACTIONS),
  ),
  canary(
    'the cursor of a schedule moves, and no job is made',
    'P17',
    change(
      FIRE,
      'yield* tx.createJobs(items, requester)',
      "items.map(({ command }) => ({ kind: 'created', job: { id: command.jobId } }))",
    ),
    change(FIRE, "one.kind === 'created' ? one.job : []", '[]'),
  ),
  canary(
    'a fixed time runs in both hours when clocks are set back',
    'P17',
    change(
      'engine/schedules/cron.js',
      'return cron.nextRun(new Date(after))?.getTime();',
      `const first = cron.nextRun(new Date(after - 3600000))?.getTime() ?? 0;
       const local = (at) => new Date(at).toLocaleString('en', { timeZone: timezone });
       const again = first + 3600000;
       if (again > after && local(again) === local(first)) return again;
       return cron.nextRun(new Date(after))?.getTime();`,
    ),
  ),
  canary(
    'cron follows UTC, whatever the time zone',
    'P17',
    change('engine/schedules/cron.js', '{ timezone, paused', "{ timezone: 'UTC', paused"),
  ),
  canary(
    'ticks that came too late to be made up for leave no record',
    'P17',
    change(PLAN, 'parts.push(missed);', ''),
  ),
  canary(
    'ticks of a paused schedule leave no record',
    'P17',
    change(FIRING, 'this.miss(rest.tick, rest.lastTick, rest.ticks, reason);', ';'),
  ),
  canary(
    'a tick that meets an open job leaves no record',
    'P17',
    change(
      FIRING,
      "this.#records.push(this.#record('skipped', tick, ",
      "void (this.#record('skipped', tick, ",
    ),
  ),
  canary(
    'a tick that has to wait is forgotten',
    'P17',
    change(FIRING, 'this.#buffer.push(tick);', ''),
  ),
  canary(
    'the key of a job does not name its tick',
    'P17',
    change(
      'core/schedule/keys.js',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of the built file
      'return `${TICK_PREFIX}${name}/${tick}`;',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the same
      'return `${TICK_PREFIX}${name}/0`;',
    ),
  ),
  canary(
    'a changed schedule also counts from before its change',
    'P17',
    change(
      'stores/verbs/schedules.js',
      'cursor_at: Math.max(settled.row.cursor_at, tx.now),',
      'cursor_at: tx.now - 7200000,',
    ),
  ),
]

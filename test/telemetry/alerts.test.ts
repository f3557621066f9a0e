// The alert rules fire when they should, and only then: Prometheus' own promtool plays series of
// values through them.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { freshFolder } from '../processes/folder.ts'

const FILE = 'docs/operations/alerts.yml'
const hasPromtool = spawnSync('promtool', ['--version']).status === 0
if (!hasPromtool) console.warn('SKIPPED: promtool is not installed (Debian: prometheus)')

interface Scene {
  readonly when: string
  readonly alert: string
  /** The value of each series in every minute, in the notation of promtool. */
  readonly series: Readonly<Record<string, string>>
  readonly after: string
  /** The labels of the alert that fires; absent if none does. */
  readonly fires?: Readonly<Record<string, string>>
}

const bucket = (operation: string, le: string) =>
  `pawl_store_operation_duration_seconds_bucket{operation="${operation}",le="${le}"}`

const SCENES: readonly Scene[] = [
  {
    when: 'jobs are ready and no worker is alive',
    alert: 'PawlNoWorkers',
    series: {
      'pawl_workers{activity="working"}': '0x10',
      'pawl_workers{activity="idle"}': '0x10',
      'pawl_workers{activity="gone"}': '3x10',
      'pawl_jobs{queue="q",lane="ready"}': '5x10',
    },
    after: '3m',
    fires: { severity: 'critical' },
  },
  {
    when: 'a worker is alive',
    alert: 'PawlNoWorkers',
    series: {
      'pawl_workers{activity="working"}': '0x10',
      'pawl_workers{activity="idle"}': '1x10',
      'pawl_jobs{queue="q",lane="ready"}': '5x10',
    },
    after: '10m',
  },
  {
    when: 'there are neither workers nor jobs',
    alert: 'PawlNoWorkers',
    series: {
      'pawl_workers{activity="idle"}': '0x10',
      'pawl_jobs{queue="q",lane="ready"}': '0x10',
    },
    after: '10m',
  },
  {
    when: 'one queue is late, another one is paused',
    alert: 'PawlQueueIsLate',
    series: {
      'pawl_oldest_ready_age_seconds{queue="late"}': '400x20',
      'pawl_queue_paused{queue="late"}': '0x20',
      'pawl_oldest_ready_age_seconds{queue="paused"}': '400x20',
      'pawl_queue_paused{queue="paused"}': '1x20',
      'pawl_oldest_ready_age_seconds{queue="quick"}': '20x20',
      'pawl_queue_paused{queue="quick"}': '0x20',
    },
    after: '10m',
    fires: { severity: 'warning', queue: 'late' },
  },
  {
    when: 'a queue is paused for two hours',
    alert: 'PawlQueuePaused',
    series: { 'pawl_queue_paused{queue="q"}': '1x120' },
    after: '2h',
    fires: { severity: 'warning', queue: 'q' },
  },
  {
    when: 'jobs of one queue are parked',
    alert: 'PawlJobsParked',
    series: {
      'pawl_jobs{queue="q",lane="parked"}': '1x20',
      'pawl_jobs{queue="other",lane="parked"}': '0x20',
    },
    after: '15m',
    fires: { severity: 'warning', queue: 'q' },
  },
  {
    when: 'half of the attempts fail',
    alert: 'PawlAttemptsFail',
    series: {
      'pawl_executions_total{queue="q",kind="a",outcome="aborted"}': '0+5x40',
      'pawl_executions_total{queue="q",kind="a",outcome="done"}': '0+5x40',
    },
    after: '30m',
    fires: { severity: 'warning', queue: 'q' },
  },
  {
    when: 'one attempt in ten fails',
    alert: 'PawlAttemptsFail',
    series: {
      'pawl_executions_total{queue="q",kind="a",outcome="aborted"}': '0+1x40',
      'pawl_executions_total{queue="q",kind="a",outcome="done"}': '0+9x40',
    },
    after: '30m',
  },
  {
    when: 'leases expire again and again',
    alert: 'PawlLeasesExpire',
    series: { 'pawl_leases_expired_total{queue="q"}': '0+1x20' },
    after: '15m',
    fires: { severity: 'warning', queue: 'q' },
  },
  {
    when: 'the first effect of a process is parked',
    alert: 'PawlEffectsParked',
    series: { 'pawl_effects_total{kind="order",effect="mail",result="parked"}': '_x5 1x30' },
    after: '8m',
    fires: { severity: 'warning', kind: 'order', effect: 'mail' },
  },
  {
    when: 'an effect was parked long ago',
    alert: 'PawlEffectsParked',
    series: { 'pawl_effects_total{kind="order",effect="mail",result="parked"}': '_x5 1x60' },
    after: '50m',
  },
  {
    when: 'a schedule is late',
    alert: 'PawlScheduleIsLate',
    series: { 'pawl_schedule_lateness_seconds{schedule="nightly"}': '90x10' },
    after: '5m',
    fires: { severity: 'warning', schedule: 'nightly' },
  },
  {
    when: 'a limit blocks a job for long',
    alert: 'PawlLimitBlocks',
    series: { 'pawl_limit_oldest_blocked_age_seconds{limit="shared/api"}': '1000x20' },
    after: '10m',
    fires: { severity: 'warning', limit: 'shared/api' },
  },
  {
    when: 'a process finds its first violation',
    alert: 'PawlInvariantBroken',
    series: {
      'pawl_invariant_violations_total{invariant="P3",check="c",severity="error"}': '_x5 1x30',
    },
    after: '8m',
    fires: { severity: 'critical', invariant: 'P3', check: 'c' },
  },
  {
    when: 'the doctor only warns',
    alert: 'PawlInvariantBroken',
    series: {
      'pawl_invariant_violations_total{invariant="P3",check="c",severity="warning"}': '0+1x30',
    },
    after: '20m',
  },
  {
    when: 'one damaged job is set aside',
    alert: 'PawlJobsSetAside',
    series: { 'pawl_jobs_isolated_total{lane="ready"}': '_x5 1x30' },
    after: '8m',
    fires: { severity: 'critical' },
  },
  {
    when: 'heartbeats take two seconds',
    alert: 'PawlStoreIsSlow',
    series: {
      [bucket('heartbeat', '1')]: '0x40',
      [bucket('heartbeat', '2.5')]: '0+9x40',
      [bucket('heartbeat', '+Inf')]: '0+9x40',
    },
    after: '30m',
    fires: { severity: 'warning' },
  },
  {
    when: 'only lists take long',
    alert: 'PawlStoreIsSlow',
    series: { [bucket('list', '1')]: '0x40', [bucket('list', '+Inf')]: '0+9x40' },
    after: '30m',
  },
  {
    when: 'workers report many errors',
    alert: 'PawlWorkerErrors',
    series: { 'pawl_worker_errors_total{worker="w",code="E_STORE_BUSY"}': '0+1x20' },
    after: '15m',
    fires: { severity: 'warning', code: 'E_STORE_BUSY' },
  },
]

/** The annotations of an alert, with its labels filled in. */
function annotationsOf(alert: string, labels: Readonly<Record<string, string>>) {
  const [, text = ''] = readFileSync(FILE, 'utf8').split(`- alert: ${alert}\n`)
  const lines = ['summary', 'action'].map((name) => {
    const [, line = ''] = new RegExp(`^ {10}${name}: (.*)$`, 'm').exec(text) ?? []
    return [name, line.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, label) => labels[label] ?? '')]
  })
  return Object.fromEntries(lines) as Record<string, string>
}

/** A scene as promtool reads it; JSON is YAML as well. */
function playOf({ alert, series, after, fires }: Scene): object {
  const expected = fires && { exp_labels: fires, exp_annotations: annotationsOf(alert, fires) }
  return {
    interval: '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: [
      { eval_time: after, alertname: alert, exp_alerts: expected === undefined ? [] : [expected] },
    ],
  }
}

function play(tests: readonly object[]): { status: number | null; text: string } {
  const file = join(freshFolder(), 'tests.yml')
  writeFileSync(file, JSON.stringify({ rule_files: [resolve(FILE)], tests }))
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file])
  return { status, text: `${stdout}${stderr}` }
}

it.runIf(hasPromtool).each(SCENES)('$alert when $when', (scene) => {
  const { status, text } = play([playOf(scene)])
  expect([status, text]).toEqual([0, expect.stringContaining('SUCCESS')])
})

it.runIf(hasPromtool)('a rule that does not fire as expected is a failure', () => {
  const [scene] = SCENES
  const { fires: _, ...silent } = scene as Scene
  expect(play([playOf(silent)])).toMatchObject({ status: 1 })
})

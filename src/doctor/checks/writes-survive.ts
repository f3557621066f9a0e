import type { Replication } from '../../stores/contract/examination.ts'
import type { Finding } from '../finding.ts'
import type { StoreCheck } from './check.ts'

type Found = Omit<Finding, 'check'>

/**
 * Checks promise P1 for a crash of the server and for a failover. A single server and asynchronous
 * replicas for reading are both valid, so neither is an error.
 */
export const writesSurvive: StoreCheck = {
  name: 'writes-survive',
  promise: 'P1',
  says: 'With the settings of the server, acknowledged writes survive a crash and a failover.',
  look: async ({ store }) => {
    const found = await store.examination.replication?.()
    return found === undefined ? [] : [...crashesOf(found), ...failoversOf(found)]
  },
}

function crashesOf({ fsync, synchronousCommit, defaultCommit }: Replication): Found[] {
  const found: Found[] = []
  if (!fsync) {
    const what = 'fsync is off: a crash of the machine can lose or damage acknowledged writes'
    found.push(finding('warning', what, { fsync }, 'Set fsync = on, and reload the server.'))
  }
  if (synchronousCommit === 'off') {
    const what =
      "this store is open with durability 'relaxed': a crash of the server can lose the last " +
      'acknowledged writes'
    const advice = "Open the store with durability 'full'."
    found.push(finding('notice', what, { synchronousCommit }, advice))
  }
  if (defaultCommit === 'off') {
    const what =
      'synchronous_commit is off on the server, database or role: a crash of the server can lose ' +
      'jobs that were enqueued in your own transactions'
    const advice =
      'Set synchronous_commit = on there (ALTER SYSTEM, ALTER DATABASE or ALTER ROLE), or by SET ' +
      'LOCAL in these transactions. Connections of Pawl set it themselves.'
    found.push(finding('warning', what, { defaultCommit }, advice))
  }
  return found
}

function failoversOf(found: Replication): Found[] {
  const { synchronousCommit, standbyNames, standbys, synchronousStandbys } = found
  const evidence = { synchronousCommit, standbyNames, standbys, synchronousStandbys }
  if (standbyNames === '') {
    if (standbys === 0) return []
    const what =
      'standbys follow asynchronously: a failover to one of them can lose the last ' +
      'acknowledged writes'
    return [
      finding(
        'notice',
        what,
        evidence,
        `Set synchronous_standby_names = '*' if one of them may take over.`,
      ),
    ]
  }
  if (synchronousCommit === 'off' || synchronousCommit === 'local') {
    const what =
      `synchronous_standby_names names a standby, but synchronous_commit = ` +
      `${synchronousCommit} does not wait for it: a failover can lose acknowledged writes`
    const advice =
      'Set synchronous_commit = on for the server, database, role or session that sets it, and ' +
      "open the store with durability 'full'."
    return [finding('warning', what, evidence, advice)]
  }
  if (synchronousStandbys === 0) {
    const what = 'no synchronous standby is connected, so every commit waits for one'
    return [
      finding('warning', what, evidence, 'Start a standby that synchronous_standby_names names.'),
    ]
  }
  if (synchronousCommit !== 'remote_write') return []
  const what =
    'synchronous_commit = remote_write: acknowledged writes are lost if the machines of primary ' +
    'and standby fail together'
  return [finding('notice', what, evidence, 'Set synchronous_commit = on.')]
}

function finding(
  severity: Finding['severity'],
  what: string,
  evidence: Readonly<Record<string, unknown>>,
  advice: string,
): Found {
  return { promise: 'P1', severity, subject: 'the server', what, evidence, advice }
}

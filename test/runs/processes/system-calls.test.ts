// The order of system calls, as the kernel sees it: events are on the disk before their snapshot is
// begun, and nothing is renamed into its place before its bytes are on the disk.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { canRecord } from '../../../chaos/power/record.ts'
import { runChild } from '../../processes/children.ts'
import { freshFolder } from '../../processes/folder.ts'

const STORY = new URL('./story.mjs', import.meta.url)
const CALLS = 'openat,write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,ftruncate'

interface Call {
  /** A durable write is one to a file that was opened with O_DSYNC. */
  readonly name: 'write' | 'durable write' | 'sync' | 'rename' | 'truncate'
  readonly path: string
  readonly to?: string
}

/** What the story did to its files, in order; temporary names are shown without their ids. */
async function recorded(): Promise<Call[]> {
  const folder = freshFolder()
  const trace = join(folder, 'trace')
  const strace = ['strace', '-f', '-y', '-s', '4096', '-o', trace, '-e', `trace=${CALLS}`]
  const { code, stderr } = await runChild(STORY, { path: join(folder, 'runs') }, strace)
  if (code !== 0) throw new Error(stderr)
  const inside = join(folder, 'runs')
  const short = (path: string) =>
    path.replace(inside, '').replace(/-[0-9a-f]{8}-[0-9a-f-]{27}\.tmp/, '.tmp')
  return callsOf(readFileSync(trace, 'utf8'))
    .filter(({ path }) => path.startsWith(folder) && !path.includes('.lock'))
    .map(({ name, path, to }) => ({ name, path: short(path), ...(to && { to: short(to) }) }))
}

/** The calls that succeeded; one that another thread interrupted is put together again. */
function callsOf(text: string): Call[] {
  const unfinished = new Map<string, string>()
  const durable = new Set<string>()
  // Files are reached through folders that are open; by their numbers, the paths of these.
  const folders = new Map<string, string>()
  const resolved = (path = '') =>
    path.replace(/^\/proc\/self\/fd\/(\d+)\/\./, (whole, fd) => folders.get(fd) ?? whole)
  return text.split('\n').flatMap((line): Call[] => {
    const [, pid = '', rest = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    if (rest.endsWith('<unfinished ...>')) {
      unfinished.set(pid, rest.slice(0, rest.indexOf('<unfinished')))
      return []
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)
    const call = resumed === null ? rest : `${unfinished.get(pid)}${resumed[1]}`
    if (!/ = \d+/.test(call)) return []
    const file = /^(\w+)\(\d+<([^>]+)>/.exec(call)
    const renamed = /^rename\w*\([^"]*"([^"]+)", [^"]*"([^"]+)"/.exec(call)
    if (renamed !== null) {
      return [{ name: 'rename', path: resolved(renamed[1]), to: resolved(renamed[2]) }]
    }
    const folder = /^openat\(.*\bO_DIRECTORY\b.* = (\d+)<([^>]+)>/.exec(call)
    if (folder !== null) folders.set(folder[1] as string, folder[2] as string)
    const opened = /^openat\(.*\bO_DSYNC\b.* = \d+<([^>]+)>/.exec(call)
    if (opened !== null) durable.add(opened[1] as string)
    const name = NAMES[file?.[1] ?? '']
    if (file === null || name === undefined) return []
    const path = file[2] as string
    return [{ name: name === 'write' && durable.has(path) ? 'durable write' : name, path }]
  })
}

const NAMES: Readonly<Record<string, Call['name']>> = {
  write: 'write',
  pwrite64: 'write',
  fsync: 'sync',
  fdatasync: 'sync',
  ftruncate: 'truncate',
}

const LOG = '/run-1/events.ndjson'
const SNAPSHOT = '/run-1/snapshot.json'

describe.runIf(canRecord())('the system calls of a run', { timeout: 60_000 }, () => {
  it('are a durable write; for the snapshot write, sync, rename, sync', async () => {
    const calls = await recorded()
    const atomic = (path: string, folder: string): Call[] => [
      { name: 'write', path: `${path}.tmp` },
      { name: 'sync', path: `${path}.tmp` },
      { name: 'rename', path: `${path}.tmp`, to: path },
      { name: 'sync', path: folder },
    ]
    const artifact = calls.find(({ to }) => to?.startsWith('/run-1/artifacts/'))?.to ?? ''
    const append: Call = { name: 'durable write', path: LOG }
    expect(calls.filter(({ path }) => path.startsWith('/run-1') || path === '')).toEqual([
      // The folder of the run is made.
      { name: 'sync', path: '' },
      ...atomic('/run-1/.holder.json', '/run-1'),
      // It is created: the events, the folders that lead to them, then the snapshot.
      append,
      { name: 'sync', path: LOG },
      { name: 'sync', path: '/run-1' },
      { name: 'sync', path: '' },
      ...atomic(SNAPSHOT, '/run-1'),
      // A change of state.
      append,
      ...atomic(SNAPSHOT, '/run-1'),
      // A change of a section: its snapshot may come later.
      append,
      // An artifact.
      { name: 'sync', path: '/run-1' },
      ...atomic(artifact, '/run-1/artifacts'),
      // The end.
      ...atomic(SNAPSHOT, '/run-1'),
    ])
  })
})

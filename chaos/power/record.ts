// The system calls of a process, recorded by strace: every write to the files of one folder with
// its bytes, every sync, and every line on stdout, in the order in which they happened.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { runChild } from '../../test/processes/children.ts'
import type { Operation } from './disk.ts'

const RECORDER = 'strace'
const CALLS = 'openat,open,write,pwrite64,lseek,fsync,fdatasync,ftruncate,rename,unlink'
const BYTES_MAX = 1_000_000

/** Whether processes can be recorded here: strace is installed, and allowed to trace. */
export function canRecord(): boolean {
  try {
    execFileSync(RECORDER, ['-e', 'trace=none', '-o', '/dev/null', 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Runs a program, and gives what it did to the folder of its file. */
export async function record(
  program: URL,
  args: { readonly path: string },
  traces: string,
): Promise<Operation[]> {
  const output = join(traces, 'calls')
  const strace = [RECORDER, '-ff', '-o', output, '-e', `trace=${CALLS}`, '-y', '-xx']
  const { code, stderr } = await runChild(program, args, [...strace, '-s', String(BYTES_MAX)])
  if (code !== 0) throw new Error(stderr)
  const threads = readdirSync(traces).map((name) => readFileSync(join(traces, name), 'latin1'))
  const recorded = threads.map((text) => parse(text, dirname(args.path)))
  // Everything happens in one thread, so its own record has the order of all.
  const busy = recorded.filter((operations) => operations.length > 0)
  if (busy.length !== 1) throw new Error(`${busy.length} threads wrote to the folder`)
  return busy[0] as Operation[]
}

/** The operations in the record of one thread; a call that failed did nothing. */
function parse(text: string, folder: string): Operation[] {
  const offsets = new Map<string, number>()
  const known = new Set<string>()
  const operations: Operation[] = []
  for (const line of text.split('\n')) {
    const call = /^(\w+)\((.*)\) += (\d+)/.exec(line)
    if (call === null) continue
    const [, name, args, result] = call as unknown as [string, string, string, string]
    operations.push(...operationsOf(name, args, Number(result), { folder, known, offsets }))
  }
  return operations
}

interface Parsing {
  readonly folder: string
  readonly known: Set<string>
  /** Where the next plain write goes, by descriptor. */
  readonly offsets: Map<string, number>
}

function operationsOf(call: string, args: string, result: number, parsing: Parsing): Operation[] {
  const { folder, known, offsets } = parsing
  const fd = /^(\d+)/.exec(args)?.[1] ?? ''
  const path = text(/<((?:\\x[0-9a-f]{2})+)>/.exec(args)?.[1])
  const strings = [...args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map((match) => match[1] as string)
  if (call === 'write' && fd === '1') return [{ kind: 'told', line: text(strings[0]) }]
  if (call === 'fsync' && path === folder) return [{ kind: 'syncFolder' }]
  const named = ['open', 'openat', 'rename', 'unlink'].includes(call)
  const file = named ? text(strings[0]) : path
  // The index beside the log is shared memory: it is made again after a crash, and never trusted.
  if (dirname(file) !== folder || file.endsWith('-shm')) return []
  switch (call) {
    case 'openat':
    case 'open': {
      if (known.has(file) || !args.includes('O_CREAT')) return []
      known.add(file)
      return [{ kind: 'create', name: file }]
    }
    case 'unlink':
      known.delete(file)
      return [{ kind: 'remove', name: file }]
    case 'rename':
      throw new Error(`${file} was renamed, which SQLite never does`)
    case 'lseek':
      offsets.set(fd, result)
      return []
    case 'ftruncate':
      return [{ kind: 'truncate', name: file, size: Number(/, (\d+)$/.exec(args)?.[1]) }]
    case 'fsync':
    case 'fdatasync':
      return [{ kind: 'sync', name: file }]
    default: {
      const plain = call === 'write'
      const at = plain ? (offsets.get(fd) ?? 0) : Number(/, (\d+)$/.exec(args)?.[1])
      if (plain) offsets.set(fd, at + result)
      const bytes = bytesOf(strings[0] ?? '').subarray(0, result)
      return [{ kind: 'write', name: file, at, bytes }]
    }
  }
}

function bytesOf(escaped: string): Buffer {
  return Buffer.from(escaped.replaceAll('\\x', ''), 'hex')
}

function text(escaped = ''): string {
  return bytesOf(escaped).toString()
}

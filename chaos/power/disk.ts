// A disk as strict as the rules of POSIX allow: a write is safe once its file was synced, a name
// once its folder was. Whatever else was done may be there after a power failure, or not, or in
// part, and in any combination.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Random } from 'pawl/testing'

/** What was done to the files of a folder, in order, and what was told to the outside. */
export type Operation =
  | { readonly kind: 'create'; readonly name: string }
  | { readonly kind: 'write'; readonly name: string; readonly at: number; readonly bytes: Buffer }
  | { readonly kind: 'truncate'; readonly name: string; readonly size: number }
  | { readonly kind: 'remove'; readonly name: string }
  | { readonly kind: 'sync'; readonly name: string }
  | { readonly kind: 'syncFolder' }
  | { readonly kind: 'told'; readonly line: string }

/** How the power fails: what becomes of what was not synced. */
export const FAILURES = ['all lost', 'none lost', 'the last lost', 'any lost'] as const
export type Failure = (typeof FAILURES)[number]

type Change = Extract<Operation, { kind: 'write' | 'truncate' }>

class Inode {
  content: Buffer = Buffer.alloc(0)
}

/** A change that is not safe yet: to the content of a file, or to the folder. */
type Unsafe =
  | { readonly inode: Inode; readonly change: Change }
  | { readonly name: string; readonly entry: Inode | undefined }

/** The files of one folder, and what of them is safe. */
export class Disk {
  readonly #live = new Map<string, Inode>()
  readonly #safe = new Map<string, Inode>()
  #unsafe: Unsafe[] = []

  /** Does an operation. */
  apply(operation: Operation): void {
    switch (operation.kind) {
      case 'create':
        this.#enter(operation.name, new Inode())
        break
      case 'remove':
        this.#enter(operation.name, undefined)
        break
      case 'write':
      case 'truncate':
        this.#unsafe.push({ inode: this.#inodeOf(operation.name), change: operation })
        break
      case 'sync': {
        const inode = this.#inodeOf(operation.name)
        this.#settle((one) => 'change' in one && one.inode === inode)
        break
      }
      case 'syncFolder':
        this.#settle((one) => 'name' in one)
        break
    }
  }

  #inodeOf(name: string): Inode {
    const inode = this.#live.get(name)
    if (inode === undefined) throw new Error(`${name} was never created`)
    return inode
  }

  #enter(name: string, entry: Inode | undefined): void {
    if (entry === undefined) this.#live.delete(name)
    else this.#live.set(name, entry)
    this.#unsafe.push({ name, entry })
  }

  /** Makes changes safe, in their order. */
  #settle(which: (one: Unsafe) => boolean): void {
    for (const one of this.#unsafe.filter(which)) {
      if ('change' in one) one.inode.content = changed(one.inode.content, one.change)
      else if (one.entry === undefined) this.#safe.delete(one.name)
      else this.#safe.set(one.name, one.entry)
    }
    this.#unsafe = this.#unsafe.filter((one) => !which(one))
  }

  /** The files as they are after the power failed now. */
  failed(failure: Failure, random: Random): Map<string, Buffer> {
    const contents = new Map<Inode, Buffer>()
    const names = new Map(this.#safe)
    for (const one of survivors(this.#unsafe, failure, random)) {
      if ('change' in one) {
        const before = contents.get(one.inode) ?? one.inode.content
        contents.set(one.inode, changed(before, one.change))
      } else if (one.entry === undefined) names.delete(one.name)
      else names.set(one.name, one.entry)
    }
    return new Map(
      [...names].map(([name, inode]) => [name, contents.get(inode) ?? inode.content] as const),
    )
  }
}

/** Which of the unsafe changes are there afterwards, whole or torn. */
function survivors(unsafe: readonly Unsafe[], failure: Failure, random: Random): Unsafe[] {
  switch (failure) {
    case 'all lost':
      return []
    case 'none lost':
      return [...unsafe]
    case 'the last lost': {
      const kept = unsafe.slice(0, Math.floor(random.next() * (unsafe.length + 1)))
      const last = kept.pop()
      return last === undefined ? kept : [...kept, torn(last, random)]
    }
    case 'any lost':
      return unsafe
        .filter(() => random.next() < 0.5)
        .map((one) => (random.next() < 0.2 ? torn(one, random) : one))
  }
}

/** A write of which only the first sectors, or the first bytes, arrived. */
function torn(one: Unsafe, random: Random): Unsafe {
  if (!('change' in one) || one.change.kind !== 'write') return one
  const { bytes } = one.change
  const unit = random.next() < 0.5 ? 512 : 1
  const length = Math.floor((random.next() * bytes.length) / unit) * unit
  return { ...one, change: { ...one.change, bytes: bytes.subarray(0, length) } }
}

function changed(content: Buffer, change: Change): Buffer {
  if (change.kind === 'truncate') {
    const size = Math.min(change.size, content.length)
    return Buffer.concat([content.subarray(0, size), Buffer.alloc(change.size - size)])
  }
  const { at, bytes } = change
  const after = Buffer.alloc(Math.max(content.length, at + bytes.length))
  content.copy(after)
  bytes.copy(after, at)
  return after
}

/** Writes files into a folder of their own. */
export function materialise(folder: string, files: ReadonlyMap<string, Buffer>): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  for (const [name, content] of files) writeFileSync(join(folder, basename(name)), content)
}

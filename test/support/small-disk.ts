// A disk of a few megabytes, for tests of what happens when it is full.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** Why there can be no such disk here; undefined if there can. */
export const noSmallDisk: string | undefined = whyNot()

function whyNot(): string | undefined {
  if (process.platform !== 'linux') return 'mounting a small disk needs Linux'
  try {
    unmount(mount(1))
    return undefined
  } catch {
    return 'mounting a small disk needs root'
  }
}

function mount(megabytes: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-disk-'))
  try {
    const options = ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder]
    execFileSync('mount', options, { stdio: 'ignore' })
  } catch (error) {
    rmdirSync(folder)
    throw error
  }
  return folder
}

function unmount(folder: string): void {
  // Lazily: handles that the garbage collector has yet to close may still be open.
  execFileSync('umount', ['-l', folder])
  rmdirSync(folder)
}

/** A folder on a disk of its own, until the test ends. */
export function smallDisk(megabytes: number): string {
  const folder = mount(megabytes)
  onTestFinished(() => unmount(folder))
  return folder
}

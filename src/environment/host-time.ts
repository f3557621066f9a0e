/**
 * The clocks of the machine. A SQLite store derives from them a time that all processes share; see
 * `../core/time-base.ts`.
 *
 * The monotonic clock is checked against the kernel's uptime four times a second. Both run at the
 * same rate. If the machine was suspended, only the uptime includes that time, and the monotonic
 * clock is correct. If the monotonic clock has run ahead of the uptime, or backwards, it was faked
 * for this process (libfaketime does that). Its readings are then corrected by the difference.
 */
import { openSync, readFileSync, readSync } from 'node:fs'
import type { HostTime } from '../core/ports.ts'
import { UPTIME_SLACK_MS } from '../core/time-base.ts'

/** The clocks that host time reads. */
export interface HostSources {
  readonly boot: string
  readonly wall: () => number
  /** The monotonic clock as this process sees it. */
  readonly monotonic: () => number
  /** Includes the time of suspension; null if it is not known. */
  readonly uptime: () => number | null
}

/** How often the monotonic clock is checked, by its own time. */
const CHECK_MS = 250
/** Two readings can be compared only if the process was not interrupted between them. */
const READING_MS = 5
const READINGS_MAX = 3

/** The clocks of a machine, from what this process can read. */
export class SteadyHost implements HostTime {
  readonly boot: string
  readonly wall: () => number
  readonly #sources: HostSources
  #correctionMs = 0
  /** The last measured `uptime − monotonic`, not corrected. */
  #differenceMs: number | null
  #readMs: number
  #checkedMs: number
  #latestMs = Number.NEGATIVE_INFINITY

  constructor(sources: HostSources) {
    this.boot = sources.boot
    this.wall = sources.wall
    this.#sources = sources
    this.#differenceMs = this.#measure()?.differenceMs ?? null
    this.#readMs = sources.monotonic()
    this.#checkedMs = this.#readMs
  }

  elapsed(): number {
    const readMs = this.#sources.monotonic()
    if (readMs - this.#checkedMs > CHECK_MS || readMs < this.#readMs) this.#check(readMs)
    else this.#readMs = readMs
    this.#latestMs = Math.max(this.#latestMs, this.#readMs + this.#correctionMs)
    return this.#latestMs
  }

  suspended(): number | null {
    this.elapsed()
    return this.#differenceMs === null ? null : this.#differenceMs - this.#correctionMs
  }

  #check(readMs: number): void {
    const reading = this.#measure()
    const ranBack = readMs < this.#readMs
    // The very reading that was compared: a later one may have been faked since.
    this.#readMs = this.#checkedMs = reading?.monotonicMs ?? this.#sources.monotonic()
    if (reading === null) return
    const measured = reading.differenceMs
    this.#differenceMs ??= measured
    const changeMs = measured - this.#differenceMs
    if (Math.abs(changeMs) <= UPTIME_SLACK_MS) {
      // The uptime is cut to 10 ms, so the largest difference is the most exact one.
      this.#differenceMs = Math.max(this.#differenceMs, measured)
      return
    }
    if (changeMs < 0 || ranBack) this.#correctionMs += changeMs
    this.#differenceMs = measured
  }

  #measure(): { readonly monotonicMs: number; readonly differenceMs: number } | null {
    const { monotonic, uptime } = this.#sources
    for (let i = 0; i < READINGS_MAX; i++) {
      const before = monotonic()
      const uptimeMs = uptime()
      if (uptimeMs === null) return null
      const after = monotonic()
      if (after >= before && after - before <= READING_MS) {
        return { monotonicMs: after, differenceMs: uptimeMs - after }
      }
    }
    return null
  }
}

/** Returns the clocks of the machine on which this process runs. */
export function systemHostTime(): HostTime {
  const kernelMs = () => {
    const [seconds, nanoseconds] = process.hrtime()
    return seconds * 1000 + nanoseconds / 1e6
  }
  const origin = originOf(kernelMs, () => performance.now())
  return new SteadyHost({
    boot: bootId(),
    wall: () => Date.now(),
    monotonic: () => origin + performance.now(),
    uptime: uptimeReader(),
  })
}

const ORIGIN_READINGS = 8

/**
 * Returns when the clock of the process began, by the kernel's clock. If the process is interrupted
 * between the two readings, the difference is too small, and the process would judge due times too
 * late for as long as it lives. So the largest difference of several is the most exact one.
 */
export function originOf(kernelMs: () => number, processMs: () => number): number {
  const differences = Array.from({ length: ORIGIN_READINGS }, () => kernelMs() - processMs())
  return Math.max(...differences)
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
  } catch {
    return ''
  }
}

/** One descriptor for the process, because stores are opened and closed often. */
let uptimeFile: number | undefined

/** A container may mount its own uptime over the kernel's. Processes do not share it. */
function uptimeReader(): () => number | null {
  try {
    if (/ \/proc\/uptime /.test(readFileSync('/proc/self/mountinfo', 'latin1'))) return () => null
    uptimeFile ??= openSync('/proc/uptime', 'r')
  } catch {
    return () => null
  }
  const file = uptimeFile
  const bytes = Buffer.alloc(64)
  return () => {
    try {
      const length = readSync(file, bytes, 0, bytes.length, 0)
      const ms = Math.round(Number.parseFloat(bytes.toString('latin1', 0, length)) * 1000)
      return Number.isFinite(ms) ? ms : null
    } catch {
      return null
    }
  }
}

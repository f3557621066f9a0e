import { describe, expect, it } from 'vitest'
import { originOf, SteadyHost, systemHostTime } from '../../src/environment/host-time.ts'

function machine() {
  const clocks = { wall: 1_800_000_000_000, monotonic: 50_000, uptime: 50_000, readingMs: 0 }
  const host = new SteadyHost({
    boot: 'b1',
    wall: () => clocks.wall,
    monotonic: () => clocks.monotonic,
    uptime: () => {
      const uptime = Math.floor(clocks.uptime / 10) * 10
      clocks.monotonic += clocks.readingMs
      clocks.uptime += clocks.readingMs
      return uptime
    },
  })
  const pass = (ms: number) => {
    clocks.wall += ms
    clocks.monotonic += ms
    clocks.uptime += ms
  }
  return { clocks, host, pass }
}

describe('the monotonic clock of a process', () => {
  it('agrees with the kernel on this machine', () => {
    const host = systemHostTime()
    const before = host.elapsed()
    expect(host.elapsed()).toBeGreaterThanOrEqual(before)
    expect(Math.abs(host.wall() - Date.now())).toBeLessThan(1000)
  })

  it('is used as it is while it runs with the uptime', () => {
    const { host, pass } = machine()
    for (let i = 0; i < 20; i++) {
      pass(333)
      expect(host.elapsed()).toBe(50_000 + 333 * (i + 1))
    }
    expect(Math.abs(host.suspended() as number)).toBeLessThanOrEqual(10)
  })

  it('is corrected if it was faked to run ahead or backwards', () => {
    const { clocks, host, pass } = machine()
    pass(1000)
    clocks.monotonic += 600_000
    expect(Math.abs(host.elapsed() - 51_000)).toBeLessThanOrEqual(10)
    pass(1000)
    clocks.monotonic -= 900_000
    expect(Math.abs(host.elapsed() - 52_000)).toBeLessThanOrEqual(20)
    pass(1000)
    expect(Math.abs(host.elapsed() - 53_000)).toBeLessThanOrEqual(20)
  })

  it('does not count the time for which the machine was suspended', () => {
    const { clocks, host, pass } = machine()
    pass(1000)
    clocks.uptime += 3_600_000
    clocks.wall += 3_600_000
    pass(500)
    expect(host.elapsed()).toBe(51_500)
    expect(host.suspended()).toBe(3_600_000)
  })

  it('is not corrected by a comparison during which the process was stopped', () => {
    const { clocks, host, pass } = machine()
    clocks.readingMs = 400
    pass(1000)
    const elapsed = host.elapsed()
    clocks.readingMs = 0
    pass(300)
    expect(host.elapsed()).toBeGreaterThan(elapsed + 290)
    expect(host.suspended()).not.toBeNull()
  })

  it('never runs backwards', () => {
    const { clocks, host } = machine()
    const before = host.elapsed()
    clocks.monotonic -= 3
    expect(host.elapsed()).toBe(before)
  })

  it('cannot be compared where there is no uptime', () => {
    const host = new SteadyHost({
      boot: '',
      wall: () => 1,
      monotonic: () => 7,
      uptime: () => null,
    })
    expect(host.elapsed()).toBe(7)
    expect(host.suspended()).toBeNull()
  })
})

describe('the origin of the clock of a process', () => {
  it('is exact although the process is interrupted between two readings', () => {
    let now = 1000
    let readings = 0
    const kernelMs = () => now
    const processMs = () => {
      readings++
      if (readings !== 4) now += 30
      return now - 400
    }
    expect(originOf(kernelMs, processMs)).toBe(400)
  })
})

import { describe, expect, it } from 'vitest'
import { SteadyHost } from '../../src/environment/host-time.ts'
import { momentNow, msSince } from '../../src/environment/moments.ts'

/** A process whose threads read the same clocks. */
function processClocks(uptimeKnown = true) {
  const clocks = { monotonic: 50_000, uptime: 350_000 }
  const startThread = () =>
    new SteadyHost({
      boot: 'b1',
      wall: () => 0,
      monotonic: () => clocks.monotonic,
      uptime: () => (uptimeKnown ? clocks.uptime : null),
    })
  const pass = (ms: number) => {
    clocks.monotonic += ms
    clocks.uptime += ms
  }
  return { clocks, startThread, pass }
}

describe('a moment that one thread sends to another', () => {
  it('is as long ago as the kernel says, although the monotonic clock was faked in between', () => {
    const { clocks, startThread, pass } = processClocks()
    const [sender, receiver] = [startThread(), startThread()]
    const sent = momentNow(sender)
    pass(40)
    clocks.monotonic += 600_000
    expect(msSince(sent, receiver)).toBe(40)
    pass(2)
    clocks.monotonic -= 900_000
    expect(msSince(sent, receiver)).toBe(42)
  })

  it('is as long ago as the kernel says in a thread that started after the clock was faked', () => {
    const { clocks, startThread, pass } = processClocks()
    const sender = startThread()
    clocks.monotonic += 30_000
    const sent = momentNow(sender)
    const receiver = startThread()
    pass(7)
    expect(msSince(sent, receiver)).toBe(7)
  })

  it('is compared by the monotonic clock alone if there is no uptime', () => {
    const { startThread, pass } = processClocks(false)
    const [sender, receiver] = [startThread(), startThread()]
    const sent = momentNow(sender)
    pass(25)
    expect(msSince(sent, receiver)).toBe(25)
  })
})

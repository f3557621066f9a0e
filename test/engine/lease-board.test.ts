// The memory through which the thread that renews leases knows of them.
import { describe, expect, it } from 'vitest'
import { BoardReader, LeaseBoard } from '../../src/engine/worker/lease-board.ts'
import type { Moment } from '../../src/environment/moments.ts'
import type { Beat, Ref } from '../../src/stores/contract/store.ts'

const beat = (ref: Ref, claim = 'c', attempt = 1): Beat => ({ ref, fence: { attempt, claim } })
const at = (elapsedMs: number): Moment => ({ elapsedMs, suspendedMs: null })
const all = () => true
const NOTHING = { ended: [], begun: [] }

function opened() {
  const grown: SharedArrayBuffer[] = []
  const board = new LeaseBoard((buffer) => grown.push(buffer))
  return { board, grown, reader: new BoardReader(board.buffer) }
}

describe('the board of leases', () => {
  it('shows each lease once, with its fence and the moment of its renewal', () => {
    const { board, reader } = opened()
    const id = '019a9c1e-7c5b-7f00-8a00-0123456789ab'
    board.put(beat(id, '019a9c1e-7c5b-7f00-8a00-ba9876543210', 7), {
      elapsedMs: 12.5,
      suspendedMs: 3,
    })
    board.put(beat(42), at(20))
    expect(reader.read(all)).toEqual({
      ended: [],
      begun: [
        {
          beat: beat(id, '019a9c1e-7c5b-7f00-8a00-ba9876543210', 7),
          renewed: { elapsedMs: 12.5, suspendedMs: 3 },
        },
        { beat: beat(42), renewed: at(20) },
      ],
    })
    expect(reader.read(all)).toEqual(NOTHING)
  })

  it('shows young leases later, and never those that ended before', () => {
    const { board, reader } = opened()
    const short = board.put(beat(1), at(100)) as number
    board.put(beat(2), at(100))
    expect(reader.read(({ elapsedMs }) => elapsedMs < 50)).toEqual(NOTHING)
    board.clear(short)
    expect(reader.read(all).begun.map(({ beat }) => beat.ref)).toEqual([2])
  })

  it('shows the end of a lease, also if its entry has another one by then', () => {
    const { board, reader } = opened()
    const first = board.put(beat(1), at(1)) as number
    reader.read(all)
    board.clear(first)
    expect(board.put(beat(2), at(2))).toBe(first)
    expect(reader.read(all)).toEqual({
      ended: [1],
      begun: [{ beat: beat(2), renewed: at(2) }],
    })
    board.clear(first)
    expect(reader.read(all)).toEqual({ ended: [2], begun: [] })
  })

  it('shows a renewal to a new reader, and no new lease to one that knows it', () => {
    const { board, reader } = opened()
    const entry = board.put(beat(1), at(1)) as number
    reader.read(all)
    board.renew(entry, at(500))
    expect(reader.read(all)).toEqual(NOTHING)
    expect(new BoardReader(board.buffer).read(all).begun).toEqual([
      { beat: beat(1), renewed: at(500) },
    ])
  })

  it('grows, and its readers go on with what they know', () => {
    const { board, grown, reader } = opened()
    for (let ref = 0; ref < 64; ref++) board.put(beat(ref), at(ref))
    expect(reader.read(all).begun).toHaveLength(64)
    for (let ref = 64; ref < 300; ref++) board.put(beat(ref), at(ref))
    expect(grown.at(-1)).toBe(board.buffer)
    reader.replace(board.buffer)
    const refs = reader.read(all).begun.map(({ beat }) => beat.ref)
    expect(refs).toEqual(Array.from({ length: 236 }, (_, i) => i + 64))
    board.clear(3)
    expect(reader.read(all)).toEqual({ ended: [3], begun: [] })
  })

  it('takes no lease that does not fit into an entry', () => {
    const { board, reader } = opened()
    expect(board.put(beat('x'.repeat(200)), at(1))).toBeUndefined()
    expect(board.put(beat('naïve'), at(1))).toBeUndefined()
    expect(reader.read(all)).toEqual(NOTHING)
  })

  it('shows no entry that is being written', () => {
    const { board, reader } = opened()
    board.put(beat(1), at(1))
    // As the writer leaves it in the middle of a write.
    Atomics.add(new Int32Array(board.buffer), 64 / 4, 1)
    expect(reader.read(all)).toEqual(NOTHING)
    Atomics.add(new Int32Array(board.buffer), 64 / 4, 1)
    expect(reader.read(all).begun).toHaveLength(1)
  })
})

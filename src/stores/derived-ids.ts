/**
 * Ids that follow from another id and a name, so that repeated work finds what it has made. Such an
 * id is a UUID of version 8 (RFC 9562): the first 48 bits are those of the other id, so that both
 * are stored near each other, and the others are a hash.
 */
import { createHash } from 'node:crypto'

/** The id of a job that a handler enqueues. */
export function childId(parentId: string, as: string): string {
  return derivedId('child', parentId, as)
}

/** The id of a node of a flow, or of an invoked child if `as` is given; see `FlowPlace`. */
export function nodeId(flow: string, n: number, as = 'node'): string {
  return derivedId('node', flow, `${as}/${n}`)
}

/** The id of child `i`, from 0, of the n-th invoke of a name. */
export function invokedId(parent: string, name: string, n: number, i: number): string {
  return nodeId(parent, i, `${name}/${n}`)
}

/** The same id for the same arguments. */
function derivedId(kind: 'child' | 'node', from: string, as: string): string {
  const hash = createHash('sha256').update(`pawl/${kind}/${from}/${as}`).digest('hex')
  const variant = ((Number.parseInt(hash[3] as string, 16) & 0x3) | 0x8).toString(16)
  const rest = `8${hash.slice(0, 3)}-${variant}${hash.slice(4, 7)}-${hash.slice(7, 19)}`
  return `${from.slice(0, 13)}-${rest}`
}

/**
 * The delay of a tick's job. It depends on the name of the schedule and the tick alone, so every
 * process and every replay has the same one. The tick itself stays at its nominal time.
 */

/** From 0 to `jitterMs`. */
export function jitterOf(name: string, tick: number, jitterMs: number): number {
  return Math.floor((hashOf(`${name}/${tick}`) / 2 ** 32) * (jitterMs + 1))
}

/** FNV-1a with a final mix, so that ticks that differ in one digit are spread. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

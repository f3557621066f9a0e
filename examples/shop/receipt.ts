/** A picture that takes some time to compute: the Julia set of an order's number. */
import { createHash } from 'node:crypto'

const SIZE = 120
const ROUNDS_MAX = 2000

/** An SVG; the same one for the same order. */
export function drawReceipt(order: string): string {
  const hash = createHash('sha256').update(order).digest()
  const angle = (hash.readUInt32BE(0) / 2 ** 32) * 2 * Math.PI
  const [a, b] = [0.7885 * Math.cos(angle), 0.7885 * Math.sin(angle)]
  const dots: string[] = []
  for (let y = 0; y < SIZE; y++) {
    for (let x = 0; x < SIZE; x++) {
      const rounds = roundsAt((x / SIZE) * 3 - 1.5, (y / SIZE) * 3 - 1.5, a, b)
      if (rounds > 12) dots.push(`<rect x="${x}" y="${y}" width="1" height="1"/>`)
    }
  }
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SIZE} ${SIZE + 12}">`
  return `${head}<text y="${SIZE + 9}" font-size="8">${order}</text>${dots.join('')}</svg>\n`
}

function roundsAt(x: number, y: number, a: number, b: number): number {
  let rounds = 0
  for (; rounds < ROUNDS_MAX && x * x + y * y < 4; rounds++) {
    ;[x, y] = [x * x - y * y + a, 2 * x * y + b]
  }
  return rounds
}

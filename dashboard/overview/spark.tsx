/** A small chart of one series, without axes: the text beside it has the numbers. */
const [WIDTH, HEIGHT] = [340, 72]

export function Spark({ values, label }: { values: readonly number[]; label: string }) {
  const top = Math.max(...values, 1)
  const points = values.map((value, i) => {
    const x = (i / Math.max(1, values.length - 1)) * WIDTH
    return `${x.toFixed(1)} ${(HEIGHT - 4 - (value / top) * (HEIGHT - 10)).toFixed(1)}`
  })
  const line = `M${points.join('L')}`
  return (
    <div class="spark">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={label}
        preserveAspectRatio="none"
      >
        <path class="area" d={`${line}V${HEIGHT}H0Z`} />
        <path class="stroke" d={line} vector-effect="non-scaling-stroke" />
      </svg>
    </div>
  )
}

/** Loaded before a process to make its machine's clock wrong by `WRONG_CLOCK_MS`. Pass it by NODE_OPTIONS=--import. */
const Right = Date;
const wrongMs = Number(process.env.WRONG_CLOCK_MS ?? 0);

class WrongDate extends Right {
  constructor(...given: readonly unknown[]) {
    super(...((given.length === 0 ? [WrongDate.now()] : given) as [number]));
  }

  static override now(): number {
    return Right.now() + wrongMs;
  }
}
globalThis.Date = WrongDate as DateConstructor;

/** What standalone prints: steps, the tour's timeline, and what to do next. */

const colours = process.stdout.isTTY && process.stdout.hasColors();
const paint = (code: number) => (text: string) => (colours ? `\x1b[${code}m${text}\x1b[0m` : text);
const bold = paint(1);
const dim = paint(2);
const red = paint(31);
const green = paint(32);
const yellow = paint(33);

const byStatus: Readonly<Record<string, (text: string) => string>> = {
  published: green,
  failed: red,
  rate_limited: yellow,
  outcome_unknown: yellow,
  publishing: dim,
  processing: dim,
};

interface TourEnd {
  readonly baseUrl: string;
  readonly key: string;
  readonly clientId: string;
  readonly link: string;
}

export class Screen {
  readonly #begun = performance.now();
  #tourBegun = performance.now();

  constructor() {
    // The reader of our output may end first. Without a listener the next line would end the drain half way, and leave
    // Postgres running.
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  }

  #write(text: string): void {
    process.stdout.write(`${text}\n`);
  }

  step(text: string): void {
    this.#write(dim(`${((performance.now() - this.#begun) / 1000).toFixed(1).padStart(6)} s  ${text}…`));
  }

  problem(message: string, logFile: string): void {
    process.stderr.write(`${red(message)}\nThe log says more: ${logFile}\n`);
  }

  warning(message: string): void {
    process.stderr.write(`${yellow(message)}\n`);
  }

  started(
    baseUrl: string,
    opsOrigin: string,
    made: { readonly workspaceId: string; readonly testKey: string; readonly liveKey: string } | null,
  ): void {
    const seconds = ((performance.now() - this.#begun) / 1000).toFixed(1);
    this.#write(`\n${bold('Ready')} in ${seconds} s: ${baseUrl}`);
    this.#write(dim(`Health and metrics, for you alone: ${opsOrigin}/readyz ${opsOrigin}/metrics`));
    if (made === null) return;
    this.#write(`\nYour workspace was made, empty: ${made.workspaceId}. Its keys are shown this once:`);
    this.#write(`  test key (sandbox accounts, nothing leaves this machine)  ${bold(made.testKey)}`);
    this.#write(`  live key (publishes, once you connect a real account)     ${bold(made.liveKey)}`);
  }

  tourBegins(): void {
    this.#tourBegun = performance.now();
    this.#write(`\n${bold('The main job: one post to ten networks')}`);
  }

  /** One line of the timeline. */
  event(what: string, detail = '', status = ''): void {
    const at = ((performance.now() - this.#tourBegun) / 1000).toFixed(2).padStart(7);
    this.#write(`${dim(`${at} s`)}  ${(byStatus[status] ?? ((text: string) => text))(what.padEnd(34))} ${dim(detail)}`);
  }

  table(header: readonly string[], rows: readonly (readonly string[])[], statusColumn: number): void {
    const widths = header.map((title, column) =>
      Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
    );
    const line = (cells: readonly string[], tint: (text: string, column: number) => string): string =>
      cells
        .map((cell, column) => tint(cell.padEnd(widths[column] ?? 0), column))
        .join('  ')
        .trimEnd();
    this.#write('');
    this.#write(line(header, (text) => bold(text)));
    for (const row of rows) {
      const status = row[statusColumn] ?? '';
      this.#write(line(row, (text, column) => (column === statusColumn ? (byStatus[status] ?? String)(text) : text)));
    }
  }

  note(text: string): void {
    this.#write(dim(text));
  }

  result(passed: boolean, text: string): void {
    this.#write(`\n${passed ? green(text) : red(text)}`);
  }

  /** The tour has a workspace of its own, whose sandbox is a week ahead: its figures are there. */
  tourEnds({ baseUrl, key, clientId, link }: TourEnd): void {
    const post = {
      clientId,
      content: 'Hello',
      targets: { mode: 'group', clientId, platforms: ['x', 'bluesky'] },
      schedule: { type: 'now' },
    };
    this.#write(`\n${bold('The workspace of the tour')}, with its post and a week of figures:`);
    this.#write(`  curl -s -H 'Authorization: Bearer ${key}' '${baseUrl}/analytics/overview'`);
    this.#write('  A post of your own to its sandbox accounts; each new post needs an Idempotency-Key of its own:');
    this.#write(`  curl -s -X POST '${baseUrl}/posts' -H 'Authorization: Bearer ${key}' \\`);
    this.#write("    -H 'Content-Type: application/json' -H 'Idempotency-Key: hello-1' \\");
    this.#write(`    -d '${JSON.stringify(post)}'`);
    this.#write('  This link signs its Owner into the console, once, within a day:');
    this.#write(`  ${link}`);
  }

  serving({
    baseUrl,
    dataDir,
    logFile,
    testKey,
    people: { consoleUrl, mcpUrl, link },
  }: {
    readonly baseUrl: string;
    readonly dataDir: string;
    readonly logFile: string;
    readonly testKey: string | null;
    readonly people: { readonly consoleUrl: string; readonly mcpUrl: string; readonly link: string };
  }): void {
    const key = testKey ?? '$POSTLINE_KEY';
    this.#write(`\n${bold('Serving')} ${baseUrl} until Ctrl-C. Try:`);
    this.#write(`  curl -s -H 'Authorization: Bearer ${key}' '${baseUrl}/posts?limit=1'`);
    this.#write(`  curl -s -H 'Authorization: Bearer ${key}' '${baseUrl}/post-targets?status=published&limit=3'`);
    this.#write(`  curl -s '${baseUrl}/openapi.json'`);
    if (testKey === null) {
      this.#write(
        dim('  (POSTLINE_KEY: a key shown at the first start, or a new one: npm run admin -- key create --help)'),
      );
    }
    this.#write(`\n${bold('Console')}, for people. This link signs the Owner in, once, within a day:`);
    this.#write(`  ${bold(`${consoleUrl}${link}`)}`);
    this.#write(`${bold('Agents')} connect over MCP, with OAuth or a key: ${mcpUrl}`);
    this.#write(`\nData: ${dataDir}   Log: ${logFile}`);
  }
}

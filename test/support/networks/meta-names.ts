/**
 * Names of the Graph API as Meta's own library for Python has them: parameters by class, method and edge, and fields by class. The
 * library may be used with Meta's services alone, so nothing of it is kept here: it is fetched once, through pip, and read as it is.
 */
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { find, MissingTool, run, tools } from '#contracts/sdk/shell.ts';

/** `POST /feed` of a page, with the names of its parameters. */
export interface MetaNames {
  /** `Page POST /feed` → names. */
  readonly edges: Readonly<Record<string, readonly string[]>>;
  /** `Page` → names. */
  readonly fields: Readonly<Record<string, readonly string[]>>;
  /** `InstagramInsightsResult Metric` → values of the enumeration. */
  readonly values: Readonly<Record<string, readonly string[]>>;
}

const library = 'facebook_business==26.0.3';
const folder = path.join(process.env.XDG_CACHE_HOME ?? path.join(homedir(), '.cache'), 'postline', 'meta-names');

/** Reads the archive without installing it. */
const reader = String.raw`
import json, re, sys, zipfile
edges, fields, values = {}, {}, {}
with zipfile.ZipFile(sys.argv[1]) as archive:
    for name in sys.argv[2].split(','):
        text = archive.read('facebook_business/adobjects/' + name + '.py').decode()
        owner = re.search(r'^class (\w+)\(', text, re.M).group(1)
        own = re.search(r'class Field\(.*?\):\n(.*?)\n\n', text, re.S)
        fields[owner] = re.findall(r"^\s+\w+ = '(\w+)'", own.group(1), re.M)
        for found in re.finditer(r'^    class (\w+)(?:\(.*?\))?:\n(.*?)\n\n', text, re.S | re.M):
            values[owner + ' ' + found.group(1)] = re.findall(r"= '([^']+)'", found.group(2))
        for part in re.split(r'\n    def ', text)[1:]:
            method = re.search(r"method='(\w+)'", part)
            edge = re.search(r"endpoint='([^']*)'", part)
            types = re.search(r'param_types = \{(.*?)\n        \}', part, re.S)
            if method and edge and types:
                names = re.findall(r"'(\w+)':", types.group(1))
                edges.setdefault(' '.join((owner, method.group(1), edge.group(1))), []).extend(names)
print(json.dumps({'edges': edges, 'fields': fields, 'values': values}))
`;

/** @param files of the library: `page`. @throws MissingTool there is no Python, or pip has no answer */
export const metaNames = async (files: readonly string[]): Promise<MetaNames> => {
  const python = await find(tools.python);
  mkdirSync(folder, { recursive: true });
  const log = path.join(folder, 'fetch.log');
  const wheelIn = (): string | undefined => readdirSync(folder).find((name) => name.endsWith('.whl'));
  if (wheelIn() === undefined) {
    const args = ['-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary', ':all:', '--dest', folder, library];
    await run(python, [...args, '--disable-pip-version-check'], { cwd: folder, log, within: 60_000, fetches: true });
  }
  const wheel = wheelIn();
  if (wheel === undefined || !existsSync(path.join(folder, wheel))) throw new MissingTool(`pip has no ${library}`);
  const output = await run(python, ['-c', reader, path.join(folder, wheel), files.join(',')], { cwd: folder, log });
  return JSON.parse(output) as MetaNames;
};

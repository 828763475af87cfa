import { copyFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { filesIn, type Generator, type Made, matches, named, type Place, tours, versions } from './client.ts';
import { generate } from './openapi-generator.ts';
import { run } from './shell.ts';
import { virtualEnvironment } from './virtual-environment.ts';

/** The two Python clients: every module imported, everything checked by mypy. */

const environment = (place: Place): Promise<string> =>
  virtualEnvironment(path.join(place.tools, 'python'), versions.python, place);

const importAll = `
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
names = [one.name for one in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
for name in names:
    importlib.import_module(name)
print(len(names), "modules")
`;

interface Checked {
  readonly bin: string;
  readonly pythonPath: string;
  readonly package: string;
  readonly mypy: string;
  readonly tour: string;
}

const check = async (place: Place, { bin, pythonPath, package: name, mypy, tour }: Checked) => {
  const options = { cwd: place.folder, log: place.log, env: { PYTHONPATH: pythonPath, MYPYPATH: pythonPath } };
  place.step('importing every module, and mypy');
  const python = path.join(bin, 'python');
  await run(python, ['-c', importAll, name], options);
  writeFileSync(path.join(place.folder, 'mypy.ini'), mypy);
  copyFileSync(tour, path.join(place.folder, 'tour.py'));
  await run(python, ['-m', 'mypy', '--config-file', 'mypy.ini', '-p', name, '-m', 'tour'], options);
  return { program: python, args: ['tour.py'], cwd: place.folder, env: { PYTHONPATH: pythonPath } };
};

const strict = '[mypy]\nstrict = True\n';

export const openapiPythonClient: Generator = {
  name: 'openapi-python-client',
  async make(place): Promise<Made> {
    const bin = await environment(place);
    place.step('generating');
    const client = path.join(place.folder, 'postline_client');
    const program = path.join(bin, 'openapi-python-client');
    const args = ['generate', '--path', place.contract, '--output-path', client, '--meta', 'none', '--fail-on-warning'];
    // It formats its code with the ruff beside it.
    const env = { PATH: `${bin}${path.delimiter}${process.env.PATH ?? ''}` };
    const said = await run(program, args, { cwd: place.folder, log: place.log, env });
    // Its own __exit__ passes arguments on in a way that mypy cannot follow.
    const mypy = `${strict}[mypy-postline_client.client]\nignore_errors = True\n`;
    const tour = await check(place, {
      ...{ bin, mypy, pythonPath: place.folder, package: 'postline_client' },
      tour: path.join(tours, 'openapi-python-client/tour.py'),
    });
    return {
      types: matches(path.join(client, 'models'), named('.py'), /^class (\w+)/gm),
      // One module for each operation, named like it.
      operations: filesIn(path.join(client, 'api'), named('.py')).map((file) => path.basename(file, '.py')),
      warnings: said.split('\n').filter((line) => /warning|error|skip/i.test(line)),
      tour,
    };
  },
};

/** By openapi-generator, with pydantic. */
export const python: Generator = {
  name: 'python',
  async make(place): Promise<Made> {
    const bin = await environment(place);
    const client = path.join(place.folder, 'client');
    const warnings = await generate(place, 'python', client, { packageName: 'postline' });
    // Its own code is not typed strictly; what a caller writes against it is.
    const mypy = `${strict}[mypy-postline.*]\nignore_errors = True\nimplicit_reexport = True\n`;
    const tour = await check(place, {
      ...{ bin, mypy, pythonPath: client, package: 'postline' },
      tour: path.join(tours, 'python/tour.py'),
    });
    return {
      types: matches(path.join(client, 'postline/models'), named('.py'), /^class (\w+)/gm),
      operations: matches(path.join(client, 'postline/api'), named('.py'), /^ {4}def ([a-z]\w*)\(/gm),
      warnings,
      tour,
    };
  },
};

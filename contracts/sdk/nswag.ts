import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Generator, matches, named, versions } from './client.ts';
import { find, run, tools } from './shell.ts';

/** C# by NSwag: compiled, without a tour. */

interface Contract {
  readonly components: { readonly schemas: Record<string, { readonly properties?: Record<string, object> }> };
}

/** NSwag gives the items of a list no type where they are a union: for it, a variant is one open object. */
const withoutUnion = (file: string): string => {
  const contract = JSON.parse(readFileSync(file, 'utf8')) as Contract;
  const { schemas } = contract.components;
  const members = schemas.XVariantInput?.properties ?? {};
  const platform = { $ref: '#/components/schemas/PlatformInput' };
  const overrides = { type: 'object', additionalProperties: true };
  const open = { type: 'object', required: ['platform'], properties: { ...members, platform, overrides } };
  return JSON.stringify({
    ...contract,
    components: { ...contract.components, schemas: { ...schemas, VariantInput: open } },
  });
};

const project = `<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net8.0</TargetFramework><RollForward>Major</RollForward></PropertyGroup>
  <ItemGroup><PackageReference Include="Newtonsoft.Json" Version="${versions['Newtonsoft.Json']}" /></ItemGroup>
</Project>
`;

export const nswag: Generator = {
  name: 'nswag',
  async make(place) {
    const dotnet = await find(tools.dotnet);
    const { folder, log } = place;
    const options = { cwd: folder, log };
    const tool = path.join(place.tools, 'nswag');
    place.step(`fetching NSwag ${versions['NSwag.ConsoleCore']}`);
    mkdirSync(tool, { recursive: true });
    const version = ['--version', versions['NSwag.ConsoleCore']];
    await run(dotnet, ['tool', 'update', '--tool-path', tool, 'NSwag.ConsoleCore', ...version], options);
    writeFileSync(path.join(folder, 'contract.json'), withoutUnion(place.contract));
    place.step('generating and compiling');
    const asked = ['/input:contract.json', '/classname:PostlineClient', '/namespace:Postline', '/output:Client.cs'];
    await run(path.join(tool, 'nswag'), ['openapi2csclient', ...asked], options);
    writeFileSync(path.join(folder, 'Postline.csproj'), project);
    await run(dotnet, ['build', '-nologo', '-v', 'quiet'], options);
    return {
      types: matches(folder, named('Client.cs'), /public (?:partial class|enum) (\w+)/g),
      operations: matches(folder, named('Client.cs'), / (\w+)Async\(/g),
      warnings: [],
      tour: null,
    };
  },
};

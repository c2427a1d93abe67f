"""The fonts that texts may use: found, read, and shown to fontconfig, which finds no others."""

from imgsvc_core.fonts.catalog import FOLDERS, SYSTEM, Catalog, catalog
from imgsvc_core.fonts.private import allowed_fonts, name_fonts, use_fonts
from imgsvc_core.fonts.styles import Font

__all__ = ["FOLDERS", "SYSTEM", "Catalog", "Font", "allowed_fonts", "catalog", "name_fonts", "use_fonts"]
